// A server on a TCP port against unauthorized clients.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/ps/control.h"
#include "train/ps/server.h"
#include "train/wire/grpc_transport.h"
#include "train/wire/testing.h"

namespace muster::train {
namespace {

using testing::HasSubstr;
using testing::Not;
using wire::Frame;

constexpr absl::Duration kSoon = absl::Seconds(30);
constexpr char kCluster[] = R"({"chief": ["secret-host:1"]})";
constexpr int kMaxStreams = 4 * 2 + 8;  // of two tasks

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

Frame HelloOf(const cluster::TaskId& task, const std::string& cluster) {
  Frame hello;
  hello.set_kind(Frame::HELLO);
  hello.set_cluster(base::Sha256Hex(cluster));
  hello.mutable_peer()->set_role(task.role);
  hello.mutable_peer()->set_index(static_cast<uint32_t>(task.index));
  hello.mutable_peer()->set_incarnation(1);
  return hello;
}

// A raw asynchronous stream, for arbitrary messages.
class RawStream {
 public:
  RawStream(const std::string& address, const std::string& hello) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    if (!hello.empty()) context_.AddMetadata("muster-hello-bin", hello);
    call_ = stub_->PrepareCall(&context_, "/muster.train.wire.ParameterServer/Stream", &queue_);
    call_->StartCall(nullptr);
    Next();
  }
  ~RawStream() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    queue_.Shutdown();
    while (Next()) {
    }
  }

  void StartWrite(const grpc::ByteBuffer& message) { call_->Write(message, nullptr); }
  // Returns whether the server answers with an error or ends the stream with one.
  bool IsRefused() {
    grpc::ByteBuffer answer;
    call_->Read(&answer, &answer);
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return false;
    if (!ok) return true;  // no message, so the status is an error
    grpc::Slice bytes;
    return answer.DumpToSingleSlice(&bytes).ok() &&
           absl::StrContains(
               absl::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()),
               "the peer does not");
  }
  // Waits for the next event. Returns false if none is outstanding.
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok);
  }

 private:
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

class HostileTest : public testing::Test {
 protected:
  HostileTest() {
    auto listener = transport_.Listen(
        address_, [this](wire::Connection& connection, const wire::Caller& caller) {
          server_.Serve(connection, caller);
        });
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  absl::StatusOr<std::unique_ptr<PsControl>> Control(const cluster::TaskId& task) {
    return PsControl::Connect(transport_, address_, HelloOf(task, kCluster), kSoon);
  }
  void ExpectServed() {
    const auto control = Control({"chief", 0});
    ASSERT_TRUE(control.ok()) << control.status();
    EXPECT_TRUE((*control)->Status(kSoon).ok());
  }

  const std::string address_ = wire::FreeAddress();
  wire::GrpcTransport transport_;
  ParameterServer server_{{.self = {"ps", 0},
                           .training_tasks = {{"chief", 0}, {"worker", 0}},
                           .cluster = kCluster,
                           .log = [](const std::string&) {}}};
  std::unique_ptr<wire::Listener> listener_;
};

// 1 GB in all, from one buffer of this process.
TEST_F(HostileTest, LargeMessagesOfUnauthorizedClientsTakeNoMemory) {
  const std::string zeros(64 << 20, '\0');
  const grpc::Slice slice(zeros.data(), zeros.size(), grpc::Slice::STATIC_SLICE);
  const grpc::ByteBuffer message(&slice, 1);
  const std::string stranger = HelloOf({"chief", 0}, "another").SerializeAsString();
  ExpectServed();
  const int64_t before = ResidentBytes();
  {
    std::vector<std::unique_ptr<RawStream>> streams;
    for (int i = 0; i < 16; ++i) {
      streams.push_back(std::make_unique<RawStream>(address_, i % 2 == 0 ? "" : stranger));
      streams.back()->StartWrite(message);
    }
    for (const auto& stream : streams) EXPECT_TRUE(stream->Next()) << "written, or refused";
    EXPECT_LT(ResidentBytes() - before, 400 << 20);
  }
  ExpectServed();
}

TEST_F(HostileTest, RejectsMalformedAndOversizedHellos) {
  wire::Frame large = HelloOf({"chief", 0}, kCluster);
  large.set_text(std::string(5000, 'x'));
  for (const std::string& hello : {std::string("\xff\xff"), large.SerializeAsString()}) {
    RawStream stream(address_, hello);
    EXPECT_TRUE(stream.IsRefused());
  }
  ExpectServed();
}

// The limit also applies to the tasks' own streams, until one of them ends.
TEST_F(HostileTest, TheNumberOfStreamsIsLimited) {
  std::vector<std::unique_ptr<PsControl>> open;
  for (int i = 0; i < kMaxStreams; ++i) {
    auto control = Control({"worker", 0});
    ASSERT_TRUE(control.ok()) << control.status();
    open.push_back(*std::move(control));
  }
  const auto refused = Control({"worker", 0});
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("streams, the maximum"));
  open.pop_back();
  const absl::Time deadline = absl::Now() + kSoon;
  while (!Control({"chief", 0}).ok()) ASSERT_LT(absl::Now(), deadline);
}

TEST_F(HostileTest, ARefusalDoesNotNameTheCluster) {
  const auto control =
      PsControl::Connect(transport_, address_, HelloOf({"chief", 0}, "another"), kSoon);
  EXPECT_TRUE(absl::IsFailedPrecondition(control.status())) << control.status();
  EXPECT_THAT(control.status().message(), Not(HasSubstr("secret-host")));
}

TEST_F(HostileTest, RefusesServicesOfAllReduce) {
  Frame hello = HelloOf({"worker", 0}, kCluster);
  hello.set_service(Frame::RELAY);
  const auto control = PsControl::Connect(transport_, address_, hello, kSoon);
  EXPECT_TRUE(absl::IsInvalidArgument(control.status())) << control.status();
}

TEST_F(HostileTest, ATaskOutsideTheClusterHasNoControl) {
  const auto control = Control({"worker", 7});
  EXPECT_TRUE(absl::IsNotFound(control.status())) << control.status();
}

// Closes both a silent connection and one that speaks HTTP/2 without opening a stream.
TEST_F(HostileTest, SilentConnectionsAreClosed) {
  const base::UniqueFd silent = wire::ConnectTo(address_);
  const base::UniqueFd idle = wire::ConnectTo(address_);
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  ASSERT_TRUE(wire::SendAll(idle.get(), preface + std::string("\0\0\0\4\0\0\0\0\0", 9)));
  for (const base::UniqueFd* socket : {&silent, &idle}) {
    char bytes[4096];
    pollfd ready = {socket->get(), POLLIN, 0};
    ssize_t size = 1;
    while (size > 0 && ::poll(&ready, 1, 40'000) > 0) {
      size = ::recv(socket->get(), bytes, sizeof(bytes), 0);
    }
    EXPECT_LE(size, 0) << "the connection must be closed";
  }
  ExpectServed();
}

}  // namespace
}  // namespace muster::train
