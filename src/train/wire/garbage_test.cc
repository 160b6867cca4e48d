// Peers that do not speak the protocol.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/files/unique_fd.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/wire/grpc_transport.h"
#include "train/wire/unix_socket.h"

namespace muster::train::wire {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kSoon = absl::Seconds(20);

Outgoing MessageOf(std::string text) {
  Outgoing message;
  message.frame.set_text(std::move(text));
  return message;
}

// Tests of a server that does.
class GarbageTest : public testing::Test {
 protected:
  GarbageTest() : path_(folder_.path() + "/socket") {
    auto listener =
        transport_.Listen("unix:" + path_, [this](Connection& connection, const Caller&) {
          auto message = connection.Receive();
          {
            absl::MutexLock lock(&mutex_);
            received_.push_back(message.status());
          }
          if (message.ok()) connection.Send(MessageOf("received"));
        });
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  ~GarbageTest() override { ExpectAlive(); }

  // Other clients are still served.
  void ExpectAlive() {
    auto connection = transport_.Connect("unix:" + path_, {}, kSoon);
    ASSERT_TRUE(connection.ok()) << connection.status();
    ASSERT_TRUE((*connection)->Send(MessageOf("hello")));
    EXPECT_TRUE((*connection)->Receive().ok());
  }
  base::UniqueFd RawSocket() {
    base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return socket;
  }
  // Returns how the server decodes a gRPC message with these bytes.
  absl::Status Say(const std::string& bytes) {
    size_t before;
    {
      absl::MutexLock lock(&mutex_);
      before = received_.size();
    }
    auto channel = grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials());
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.AddMetadata("muster-hello-bin", "");
    grpc::CompletionQueue queue;
    auto call = stub.PrepareCall(&context, "/muster.train.wire.ParameterServer/Stream", &queue);
    void* tag;
    bool ok;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    grpc::Slice slice(bytes);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    queue.Next(&tag, &ok);
    const auto received = [&] {
      mutex_.AssertHeld();
      return received_.size() > before;
    };
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&received), kSoon));
      status = received_.back();
    }
    context.TryCancel();
    grpc::Status finished;
    call->Finish(&finished, nullptr);
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return status;
  }

  base::TempDir folder_;
  const std::string path_;
  GrpcTransport transport_;
  absl::Mutex mutex_;
  std::vector<absl::Status> received_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Listener> listener_;
};

TEST_F(GarbageTest, RandomBytes) {
  for (int i = 0; i < 10; ++i) {
    const base::UniqueFd socket = RawSocket();
    const std::string bytes(10'000, static_cast<char>(i * 37));
    (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

TEST_F(GarbageTest, AnHttpRequestOfABrowser) {
  const base::UniqueFd socket = RawSocket();
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_GT(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
  char answer[4096];
  while (::recv(socket.get(), answer, sizeof(answer), 0) > 0) {
  }
}

TEST_F(GarbageTest, SilenceAndHalfAPreface) {
  const base::UniqueFd silent = RawSocket();
  const base::UniqueFd half = RawSocket();
  ASSERT_EQ(::send(half.get(), "PRI * HT", 8, MSG_NOSIGNAL), 8);
  ExpectAlive();
}

TEST_F(GarbageTest, MalformedFrames) {
  const auto length = [](uint32_t n) { return std::string(reinterpret_cast<char*>(&n), 4); };
  const std::string cases[] = {"",
                               "abc",
                               length(0xffffffff),
                               length(0xffffffff) + std::string(100, 'x'),
                               length(1 << 30) + "x",
                               length(10) + "short",
                               length(4) + "\xff\xff\xff\xff",
                               length(70 << 20) + std::string(71 << 20, '\0')};
  for (const std::string& bytes : cases) {
    const absl::Status status = Say(bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bytes.size() << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("does not speak"));
  }
  EXPECT_TRUE(Say(length(0)).ok());  // an empty frame is valid
}

TEST_F(GarbageTest, AnUnknownMethodIsAnswered) {
  auto channel = grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer answer;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, "/some.Other/Method", grpc::ByteBuffer(), &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// A listener that is not a gRPC server.
TEST(Garbage, AServerThatDoesNotSpeakTheProtocol) {
  base::TempDir folder;
  const std::string path = folder.path() + "/socket";
  const auto listener = UnixListener::Start(path, [](base::UniqueFd peer) {
    const std::string greeting = "220 mail.example.com ESMTP\r\n";
    (void)::send(peer.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  GrpcTransport transport;
  const auto connection = transport.Connect("unix:" + path, {}, absl::Milliseconds(300));
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_TRUE(absl::IsUnavailable((*connection)->Receive().status()));
}

}  // namespace
}  // namespace muster::train::wire
