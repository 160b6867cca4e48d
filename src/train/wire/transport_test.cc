#include "train/wire/transport.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/testing.h"
#include "cluster/address.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/wire/fake_transport.h"
#include "train/wire/grpc_transport.h"
#include "train/wire/outbox.h"
#include "train/wire/testing.h"
#include "train/wire/watchdog.h"

namespace muster::train::wire {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Duration kSoon = absl::Seconds(20);

Outgoing MessageOf(std::string text, std::vector<Chunk> payload = {}) {
  Outgoing message{{}, std::move(payload)};
  message.frame.set_text(std::move(text));
  return message;
}

// Echoes messages.
void Echo(Connection& connection, const Caller& /*caller*/) {
  for (;;) {
    auto message = connection.Receive();
    if (!message.ok()) return;
    Outgoing answer{message->frame, {}};
    const absl::Span<const Chunk> pieces = message->payload.pieces();
    answer.payload.assign(pieces.begin(), pieces.end());
    if (!connection.Send(std::move(answer))) return;
  }
}

enum class Kind { kFake, kUnix, kLongUnix, kTcp };

class TransportTest : public testing::TestWithParam<Kind> {
 protected:
  TransportTest() {
    switch (GetParam()) {
      case Kind::kFake:
        transport_ = std::make_unique<FakeTransport>();
        address_ = "somewhere";
        return;
      case Kind::kUnix:
        address_ = absl::StrCat("unix:", folder_.path(), "/socket");
        break;
      case Kind::kLongUnix: {
        const std::string deep =
            absl::StrCat(folder_.path(), "/", std::string(100, 'a'), "/", std::string(100, 'b'));
        std::filesystem::create_directories(deep);
        address_ = absl::StrCat("unix:", deep, "/socket");
        break;
      }
      case Kind::kTcp:
        address_ = FreeAddress();
    }
    transport_ = std::make_unique<GrpcTransport>();
  }

  std::unique_ptr<Listener> Listen(StreamHandler serve) {
    auto listener = transport_->Listen(address_, std::move(serve));
    EXPECT_TRUE(listener.ok()) << listener.status();
    return listener.ok() ? *std::move(listener) : nullptr;
  }
  std::unique_ptr<Connection> Connect() {
    auto connection = transport_->Connect(address_, {}, kSoon);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return connection.ok() ? *std::move(connection) : nullptr;
  }

  base::TempDir folder_;
  std::string address_;
  std::unique_ptr<Transport> transport_;
};
std::string NameOf(const testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"Fake", "Unix", "LongUnix", "Tcp"};
  return kNames[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Kinds, TransportTest,
                         testing::Values(Kind::kFake, Kind::kUnix, Kind::kLongUnix, Kind::kTcp),
                         NameOf);

TEST_P(TransportTest, CarriesMessagesInOrder) {
  auto listener = Listen(Echo);
  auto connection = Connect();
  Outbox outbox(*connection);
  for (int i = 0; i < 1000; ++i) outbox.Post(MessageOf(absl::StrCat(i)));
  for (int i = 0; i < 1000; ++i) {
    auto message = connection->Receive();
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->frame.text(), absl::StrCat(i));
    EXPECT_EQ(message->payload.size(), 0U);
  }
}

TEST_P(TransportTest, TheHelloComesWithTheStream) {
  auto listener = Listen([](Connection& connection, const Caller& caller) {
    Outgoing answer{caller.hello, {}};
    answer.frame.set_text(caller.address);
    connection.Send(std::move(answer));
  });
  Frame hello;
  hello.set_kind(Frame::HELLO);
  hello.mutable_peer()->set_process(std::string("\0\n binary", 9));
  auto connection = transport_->Connect(address_, hello, kSoon);
  ASSERT_TRUE(connection.ok()) << connection.status();
  auto answer = (*connection)->Receive();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->frame.kind(), Frame::HELLO);
  EXPECT_EQ(answer->frame.peer().process(), hello.peer().process());
  EXPECT_FALSE(answer->frame.text().empty());
}

TEST_P(TransportTest, LargeMessages) {
  auto listener = Listen(Echo);
  auto connection = Connect();
  auto large = std::make_shared<std::vector<uint32_t>>(50 << 18);
  for (size_t i = 0; i < large->size(); ++i) (*large)[i] = static_cast<uint32_t>(i * 2654435761U);
  const size_t size = large->size() * 4;
  Outbox outbox(*connection);
  outbox.Post(MessageOf("large", {{large->data(), size, large}}));
  auto message = connection->Receive();
  ASSERT_TRUE(message.ok()) << message.status();
  ASSERT_EQ(message->payload.size(), size);
  EXPECT_EQ(std::memcmp(message->payload.InOnePiece().data, large->data(), size), 0);
}

TEST_P(TransportTest, ManyChunksOfAnySize) {
  auto listener = Listen(Echo);
  auto connection = Connect();
  auto memory = std::make_shared<std::string>();
  for (int i = 0; i < 300'000; ++i) memory->push_back(static_cast<char>(i * 31 % 251));
  Outgoing message = MessageOf("chunks");
  std::string expected;
  for (size_t i = 0; i < 2000; ++i) {
    const size_t size = i * i % 301;
    message.payload.push_back({memory->data() + i, size, memory});
    expected += memory->substr(i, size);
  }
  Outbox outbox(*connection);
  outbox.Post(std::move(message));
  auto answer = connection->Receive();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(std::string(static_cast<const char*>(answer->payload.InOnePiece().data),
                        answer->payload.size()),
            expected);
}

TEST_P(TransportTest, MemoryIsReleasedAfterItIsSent) {
  auto listener = Listen(Echo);
  auto memory = std::make_shared<std::string>(1 << 20, 'x');
  const std::weak_ptr<std::string> watched = memory;
  {
    auto connection = Connect();
    Outgoing message = MessageOf("", {{memory->data(), memory->size(), memory}});
    memory.reset();
    ASSERT_TRUE(connection->Send(std::move(message)));
    auto answer = connection->Receive();
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->payload.size(), size_t{1} << 20);
  }
  for (int i = 0; i < 2000 && !watched.expired(); ++i) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(watched.expired());
}

TEST_P(TransportTest, CancelWakesReceive) {
  auto listener = Listen(Echo);
  auto connection = Connect();
  std::jthread cancels([&] {
    absl::SleepFor(absl::Milliseconds(20));
    connection->Cancel();
  });
  EXPECT_FALSE(connection->Receive().ok());
  EXPECT_FALSE(connection->Send(MessageOf("too late")));
}

// The server never reads: Send() blocks eventually, and returns when the stream is cancelled.
TEST_P(TransportTest, CancelWakesSend) {
  absl::Notification over;
  auto listener = Listen([&](Connection&, const Caller&) { over.WaitForNotification(); });
  auto connection = Connect();
  auto memory = std::make_shared<std::string>(8 << 20, 'x');
  std::jthread cancels([&] {
    absl::SleepFor(absl::Milliseconds(200));
    connection->Cancel();
  });
  while (connection->Send(MessageOf("", {{memory->data(), memory->size(), memory}}))) {
  }
  EXPECT_FALSE(connection->Receive().ok());
  over.Notify();
}

TEST_P(TransportTest, APeerThatVanishesWhileWeSend) {
  auto listener = Listen([](Connection& connection, const Caller&) { (void)connection.Receive(); });
  auto connection = Connect();
  auto memory = std::make_shared<std::string>(8 << 20, 'x');
  while (connection->Send(MessageOf("", {{memory->data(), memory->size(), memory}}))) {
  }
  EXPECT_TRUE(absl::IsUnavailable(connection->Receive().status()));
}

TEST_P(TransportTest, AServerDetectsALostPeer) {
  absl::Notification came, gone;
  auto listener = Listen([&](Connection& connection, const Caller&) {
    came.Notify();
    while (connection.Receive().ok()) {
    }
    gone.Notify();
  });
  auto connection = Connect();
  connection->Send(MessageOf("hello"));
  ASSERT_TRUE(came.WaitForNotificationWithTimeout(kSoon));
  connection.reset();
  EXPECT_TRUE(gone.WaitForNotificationWithTimeout(kSoon));
}

TEST_P(TransportTest, TheLastMessageOfAServerArrives) {
  auto listener = Listen([](Connection& connection, const Caller&) {
    (void)connection.Receive();
    connection.Send(MessageOf("goodbye"));
  });
  auto connection = Connect();
  ASSERT_TRUE(connection->Send(MessageOf("hello")));
  auto message = connection->Receive();
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->frame.text(), "goodbye");
  EXPECT_FALSE(connection->Receive().ok());
}

TEST_P(TransportTest, EndingTheListenerEndsEveryStream) {
  auto listener = Listen(Echo);
  auto first = Connect();
  auto second = Connect();
  ASSERT_TRUE(first->Send(MessageOf("")));
  ASSERT_TRUE(first->Receive().ok());
  std::jthread ends([&] { listener.reset(); });
  EXPECT_FALSE(second->Receive().ok());
  EXPECT_FALSE(first->Receive().ok());
}

TEST_P(TransportTest, AnAddressThatIsTaken) {
  auto listener = Listen(Echo);
  const auto second = transport_->Listen(address_, Echo);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(second.status().message(), HasSubstr("cannot listen at"));
  EXPECT_THAT(second.status().message(), HasSubstr(address_));
  // The first listener still holds the address.
  auto connection = Connect();
  ASSERT_TRUE(connection->Send(MessageOf("still here")));
  EXPECT_TRUE(connection->Receive().ok());
  connection.reset();
  listener.reset();
  EXPECT_NE(Listen(Echo), nullptr);
}

TEST_P(TransportTest, NoServerAnswers) {
  const absl::Time before = absl::Now();
  const auto connection = transport_->Connect(address_, {}, absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsUnavailable(connection.status()));
  EXPECT_THAT(connection.status().message(), HasSubstr(address_));
  EXPECT_LT(absl::Now() - before, absl::Seconds(10));
}

TEST_P(TransportTest, ConnectWaitsForTheListener) {
  std::unique_ptr<Listener> listener;
  std::jthread later([&] {
    absl::SleepFor(absl::Milliseconds(50));
    listener = Listen(Echo);
  });
  auto connection = Connect();
  later.join();
  ASSERT_TRUE(connection->Send(MessageOf("")));
  EXPECT_TRUE(connection->Receive().ok());
}

TEST_P(TransportTest, OutboxPostNeverBlocks) {
  absl::Notification over;
  auto listener = Listen([&](Connection&, const Caller&) { over.WaitForNotification(); });
  auto connection = Connect();
  auto memory = std::make_shared<std::string>(1 << 20, 'x');
  {
    Outbox outbox(*connection);
    for (int i = 0; i < 200; ++i) {
      outbox.Post(MessageOf("", {{memory->data(), memory->size(), memory}}));
    }
    outbox.Abandon();
    outbox.CloseAfterSending();
    outbox.Post(MessageOf("dropped"));
  }
  over.Notify();
}

TEST_P(TransportTest, AnOutboxOutlivesItsConnection) {
  auto listener = Listen(Echo);
  auto connection = Connect();
  Outbox outbox(*connection);
  outbox.CloseAfterSending();
  connection.reset();
  outbox.Post(MessageOf("dropped"));
  outbox.Abandon();
}

TEST_P(TransportTest, AWatchdogEndsAStreamThatDoesNotAnswer) {
  absl::Notification over;
  auto listener = Listen([&](Connection&, const Caller&) { over.WaitForNotification(); });
  auto connection = Connect();
  Watchdog watchdog(*connection);
  watchdog.Arm(base::Clock::Real().Now() + absl::Milliseconds(50));
  EXPECT_FALSE(connection->Receive().ok());
  EXPECT_FALSE(watchdog.Disarm());
  over.Notify();
}

TEST(Watchdog, DoesNotEndAStreamThatAnswers) {
  FakeTransport transport;
  auto listener = transport.Listen("here", Echo);
  auto connection = *transport.Connect("here", {}, kSoon);
  Watchdog watchdog(*connection);
  for (int i = 0; i < 20; ++i) {
    watchdog.Arm(base::Clock::Real().Now() + kSoon);
    connection->Send(MessageOf(""));
    EXPECT_TRUE(connection->Receive().ok());
    EXPECT_TRUE(watchdog.Disarm());
  }
}

TEST(GrpcTransport, AStaleSocketIsReplaced) {
  base::TempDir folder;
  const std::string path = folder.path() + "/socket";
  {
    base::UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  GrpcTransport transport;
  auto listener = transport.Listen("unix:" + path, Echo);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(transport.Connect("unix:" + path, {}, kSoon).ok());
}

TEST(GrpcTransport, AHelloThatExceedsTheLimit) {
  Frame hello;
  hello.set_text(std::string(kMaxHelloBytes, 'x'));
  const auto connection = GrpcTransport().Connect(FreeAddress(), hello, kSoon);
  EXPECT_TRUE(absl::IsInvalidArgument(connection.status())) << connection.status();
}

// Nothing leaves this machine without certificates, unless the user allows it.
TEST(GrpcTransport, PlaintextStaysOnTheMachine) {
  GrpcTransport transport;
  for (const char* address : {"10.1.2.3:2222", "vm-a:2222", "0.0.0.0:2222", "[::]:2222"}) {
    for (const absl::Status& status :
         {transport.Listen(address, Echo).status(),
          transport.Connect(address, {}, absl::Milliseconds(10)).status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(status.message(), AllOf(HasSubstr(address), HasSubstr("MUSTER_TLS_DIR"),
                                          HasSubstr("MUSTER_INSECURE_PLAINTEXT=1")));
    }
  }
  GrpcTransport open(std::nullopt, Plaintext::kAnywhere);
  const std::string everywhere = absl::StrCat("0.0.0.0:", cluster::PortOf(FreeAddress()));
  const auto listener = open.Listen(everywhere, Echo);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(open.Connect(everywhere, {}, kSoon).ok());
}

TEST(GrpcTransport, AMissingFolder) {
  base::TempDir folder;
  GrpcTransport transport;
  for (const std::string& name : {std::string("missing"), std::string(150, 'a')}) {
    const std::string address = absl::StrCat("unix:", folder.path(), "/", name, "/socket");
    EXPECT_FALSE(transport.Listen(address, Echo).ok());
    // The folder may be created later.
    EXPECT_TRUE(
        absl::IsUnavailable(transport.Connect(address, {}, absl::Milliseconds(50)).status()));
  }
}

}  // namespace
}  // namespace muster::train::wire
