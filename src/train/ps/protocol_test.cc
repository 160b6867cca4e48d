// A server against peers that violate the protocol.
#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/ps/testing.h"

namespace muster::train {
namespace {

using testing::HasSubstr;
using wire::Frame;

constexpr absl::Duration kSoon = absl::Seconds(30);

// A raw stream to a server, for arbitrary messages.
class RawPeer {
 public:
  RawPeer(Job& job, int rank, int server, bool control) {
    Frame hello = job.HelloOf(rank, 0, 1'000'000 + rank);
    hello.set_kind(Frame::HELLO);
    hello.set_control(control);
    connection_ = *job.transport().Connect(job.addresses()[server], hello, kSoon);
    const Frame welcome = Answer();
    EXPECT_NE(welcome.kind(), Frame::ERROR) << welcome.text();
    generation_ = welcome.generation();
  }
  Frame Call(wire::Outgoing message) {
    EXPECT_TRUE(connection_->Send(std::move(message)));
    return Answer();
  }
  Frame Answer() {
    const auto answer = connection_->Receive();
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->frame : Frame();
  }
  wire::Connection& connection() { return *connection_; }
  uint64_t generation() const { return generation_; }

 private:
  std::unique_ptr<wire::Connection> connection_;
  uint64_t generation_ = 0;
};

wire::Outgoing MessageOf(Frame::Kind kind, uint64_t generation, size_t bytes) {
  static const std::vector<std::byte> ones(1 << 20, std::byte{0x11});
  wire::Outgoing message;
  message.frame.set_kind(kind);
  message.frame.set_generation(generation);
  message.payload.push_back({ones.data(), bytes, nullptr});
  return message;
}

class ProtocolTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Grpc, ProtocolTest, testing::Bool());

// A message that needs the generation.
using Message = std::function<wire::Outgoing(uint64_t)>;

std::vector<Message> WrongPushes(const ShardShape& shape) {
  const auto size = static_cast<size_t>(shape.buckets[0].elements * 4);
  const auto buffers = static_cast<size_t>(shape.buffer_bytes);
  const int table = shape.table_bucket(0);
  const auto push = [](size_t bytes, std::function<void(Frame&)> edit) -> Message {
    return [=](uint64_t generation) {
      wire::Outgoing message = MessageOf(Frame::PUSH, generation, bytes);
      edit(message.frame);
      return message;
    };
  };
  return {
      push(size - 4, [](Frame&) {}),
      push(size + 1, [](Frame&) {}),
      push(0, [](Frame&) {}),
      push(size, [](Frame& frame) { frame.set_precision(Frame::FLOAT16); }),
      push(size / 2, [](Frame& frame) { frame.set_precision(static_cast<Frame::Precision>(9)); }),
      push(size, [](Frame& frame) { frame.set_skipped(true); }),
      push(size, [](Frame& frame) { frame.set_bucket(4'000'000'000); }),
      push(size, [=](Frame& frame) { frame.set_bucket(shape.bucket_count()); }),
      push(size, [](Frame& frame) { frame.set_version(1); }),
      push(size, [](Frame& frame) { frame.set_generation(3); }),
      push(40, [=](Frame& frame) { frame.set_bucket(table), frame.set_count(1); }),
      push(80, [=](Frame& frame) { frame.set_bucket(table), frame.set_count(-1); }),
      push(80, [=](Frame& frame) { frame.set_bucket(table), frame.set_count(int64_t{1} << 62); }),
      push(buffers, [=](Frame& frame) { frame.set_bucket(shape.buffer_bucket()); })};
}

std::vector<Message> OtherNonsense(const ShardShape& shape) {
  const int table = shape.table_bucket(0);
  return {
      [](uint64_t generation) { return MessageOf(Frame::ASSIGN, generation, 8); },
      [](uint64_t generation) { return MessageOf(static_cast<Frame::Kind>(99), generation, 8); },
      [=](uint64_t generation) {
        wire::Outgoing pull = MessageOf(Frame::ROWS_PULL, generation, 16);
        pull.frame.set_bucket(table);
        return pull;
      },
      [=](uint64_t generation) {
        wire::Outgoing pull = MessageOf(Frame::ROWS_PULL, generation, 7);
        pull.frame.set_bucket(table);
        return pull;
      },
      [](uint64_t generation) { return MessageOf(Frame::ROWS_PULL, generation, 0); },
      [](uint64_t generation) {
        wire::Outgoing pull = MessageOf(Frame::PULL, generation, 0);
        pull.frame.set_version(5);
        return pull;
      },
      [](uint64_t generation) {
        wire::Outgoing pull = MessageOf(Frame::PULL, generation, 0);
        pull.frame.set_bucket(0xffffffff);
        return pull;
      }};
}

TEST_P(ProtocolTest, InvalidMessagesDoNotAffectOtherTasks) {
  Job job({.tasks = 2, .servers = 2, .grpc = GetParam()});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  const ShardShape& shape = job.plans()[0].shape;
  ASSERT_GT(shape.tables.size(), 0U);
  std::vector<Message> messages = WrongPushes(shape);
  for (Message& message : OtherNonsense(shape)) messages.push_back(std::move(message));
  for (size_t i = 0; i < messages.size(); ++i) {
    RawPeer peer(job, 1, 0, /*control=*/false);
    const Frame answer = peer.Call(messages[i](peer.generation()));
    EXPECT_EQ(answer.kind(), Frame::ERROR) << i;
    EXPECT_FALSE(answer.text().empty());
    EXPECT_FALSE(peer.connection().Receive().ok()) << "the stream has ended";
  }
  std::jthread other([&job] { EXPECT_TRUE(Task(job, 1, 1).Run().ok()); });
  EXPECT_TRUE(Task(job, 0).Run().ok());
  other.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

// A dense bucket has no rows, so `count` is ignored.
TEST(Protocol, ACountOfRowsInADenseBucketIsIgnored) {
  Job job({.tasks = 1, .variables = DenseOnly(), .limit = 1});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  RawPeer peer(job, 0, 0, /*control=*/false);
  const auto size = static_cast<size_t>(job.plans()[0].shape.buckets[0].elements * 4);
  for (const int64_t count : {int64_t{1} << 40, int64_t{-5}}) {
    wire::Outgoing push = MessageOf(Frame::PUSH, peer.generation(), size / 2);
    push.frame.set_precision(Frame::FLOAT16);
    push.frame.set_count(count);
    EXPECT_EQ(peer.Call(std::move(push)).kind(), Frame::VALUES);
  }
}

TEST(Protocol, AsyncAcceptsOnlyGrantedSteps) {
  Job job({.tasks = 1, .variables = DenseOnly(), .strategy = Strategy::kAsync, .limit = 1});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  RawPeer peer(job, 0, 0, /*control=*/false);
  const auto size = static_cast<size_t>(job.plans()[0].shape.buckets[0].elements * 4);
  EXPECT_EQ(peer.Call(MessageOf(Frame::PUSH, peer.generation(), size)).kind(), Frame::ERROR);
  EXPECT_EQ(job.Now(), job.SerialResult(0));
}

// Invalid requests of the chief.
class RequestTest : public testing::Test {
 protected:
  RequestTest() {
    spec_.generation = 5;
    spec_.cursors = {0};
    spec_.shape = job_.plans()[0].shape;
  }
  std::string Refused(wire::Outgoing request) {
    const Frame answer = control_.Call(std::move(request));
    EXPECT_EQ(answer.kind(), Frame::ERROR);
    return answer.text();
  }
  static wire::Outgoing Prepare(const std::string& text) {
    wire::Outgoing prepare = MessageOf(Frame::PREPARE, 0, 0);
    prepare.frame.set_text(text);
    return prepare;
  }
  Frame::Kind Answer(wire::Outgoing request) { return control_.Call(std::move(request)).kind(); }

  Job job_{{.tasks = 1}};
  RawPeer control_{job_, 0, 0, /*control=*/true};
  GenerationSpec spec_;
};

TEST_F(RequestTest, BeforeValuesAreAssigned) {
  for (const Frame::Kind kind : {Frame::ASSIGN, Frame::ACTIVATE, Frame::SNAPSHOT, Frame::READ,
                                 Frame::SET_LIMIT, Frame::PUSH}) {
    EXPECT_THAT(Refused(MessageOf(kind, 0, 0)), HasSubstr("the chief has not sent PREPARE"));
  }
}

TEST_F(RequestTest, AMalformedDescription) {
  for (const char* text : {"", "{", "null", "[]", "{}", "{\"generation\": -1}"}) {
    Refused(Prepare(text));
  }
  for (const char* key : {"step", "limit", "total_steps", "backup_tasks", "staleness", "cursors",
                          "strategy", "shape"}) {
    for (const char* value : {"-1", "1.5", "null", "\"x\"", "[-1]", "18446744073709551615"}) {
      nlohmann::json json = spec_.ToJson();
      json[key] = nlohmann::json::parse(value);
      Refused(Prepare(json.dump()));
    }
  }
  GenerationSpec two_tasks = spec_;
  two_tasks.cursors = {0, 0};
  EXPECT_THAT(Refused(Prepare(two_tasks.ToJson().dump())),
              HasSubstr("start all tasks with the same cluster"));
  GenerationSpec huge = spec_;
  huge.shape = ShardShape();
  huge.shape.elements = int64_t{1} << 47;
  huge.shape.buckets = {{0, huge.shape.elements}};
  EXPECT_THAT(Refused(Prepare(huge.ToJson().dump())), HasSubstr("use more ps tasks"));
}

TEST_F(RequestTest, AssigningOutOfRange) {
  EXPECT_EQ(Answer(Prepare(spec_.ToJson().dump())), Frame::OK);
  wire::Outgoing assign = MessageOf(Frame::ASSIGN, 5, 8);
  for (const int area : {7, -1, 1 << 30}) {
    assign.frame.set_area(static_cast<Frame::Area>(area));
    EXPECT_THAT(Refused(assign), HasSubstr("there is no area"));
  }
  assign.frame.set_area(Frame::AREA_VALUES);
  for (const int64_t offset : {int64_t{-1}, spec_.shape.elements * 4 - 7, INT64_MAX}) {
    assign.frame.set_offset(offset);
    EXPECT_THAT(Refused(assign), HasSubstr("beyond the shard"));
  }
  assign.frame.set_generation(4);
  EXPECT_THAT(Refused(assign), HasSubstr("another generation"));
  EXPECT_EQ(Answer(MessageOf(Frame::ACTIVATE, 5, 0)), Frame::OK);
  EXPECT_THAT(Refused(MessageOf(Frame::ASSIGN, 5, 8)), HasSubstr("ASSIGN to an active shard"));
}

TEST_F(RequestTest, ReadingOutOfRange) {
  EXPECT_EQ(Answer(Prepare(spec_.ToJson().dump())), Frame::OK);
  EXPECT_EQ(Answer(MessageOf(Frame::ACTIVATE, 5, 0)), Frame::OK);
  wire::Outgoing read = MessageOf(Frame::READ, 5, 0);
  read.frame.set_count(4);
  EXPECT_THAT(Refused(read), HasSubstr("READ without SNAPSHOT"));
  read.frame.set_sequence(control_.Call(MessageOf(Frame::SNAPSHOT, 5, 0)).sequence());
  EXPECT_EQ(Answer(read), Frame::DATA);
  read.frame.set_area(static_cast<Frame::Area>(-1));
  EXPECT_THAT(Refused(read), HasSubstr("there is no area"));
  read.frame.set_area(Frame::AREA_TABLES);
  read.frame.set_offset(INT64_MAX);
  read.frame.set_count(INT64_MAX);
  EXPECT_THAT(Refused(read), HasSubstr("beyond the shard"));
}

// Every control request except STATUS changes or reads the model.
TEST_P(ProtocolTest, OnlyTheChiefControls) {
  Job job({.tasks = 2, .grpc = GetParam(), .variables = DenseOnly()});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  RawPeer worker(job, 1, 0, /*control=*/true);
  EXPECT_EQ(worker.Call(MessageOf(Frame::STATUS, 0, 0)).kind(), Frame::OK);
  for (const Frame::Kind kind : {Frame::PREPARE, Frame::ASSIGN, Frame::ACTIVATE, Frame::SNAPSHOT,
                                 Frame::READ, Frame::SET_LIMIT, Frame::FINISH}) {
    const Frame answer = worker.Call(MessageOf(kind, 0, 0));
    EXPECT_EQ(answer.kind(), Frame::ERROR) << Frame::Kind_Name(kind);
    EXPECT_EQ(answer.code(), static_cast<int>(absl::StatusCode::kPermissionDenied));
    EXPECT_THAT(answer.text(), HasSubstr("only chief:0 may send"));
  }
  std::jthread other([&job] { EXPECT_TRUE(Task(job, 1).Run().ok()); });
  EXPECT_TRUE(Task(job, 0).Run().ok());
  other.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
  EXPECT_TRUE(coordinator->EndJob().ok());
}

TEST(Protocol, ActivatingAgainKeepsTheValues) {
  Job job({.tasks = 1, .variables = DenseOnly()});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task task(job, 0);
  ASSERT_TRUE(task.Run().ok());
  RawPeer control(job, 0, 0, /*control=*/true);
  EXPECT_EQ(control.Call(MessageOf(Frame::ACTIVATE, task.generation(), 0)).kind(), Frame::OK);
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST_P(ProtocolTest, ATaskThatDoesNotReadBlocksNoOther) {
  Job job(
      {.tasks = 3, .servers = 2, .grpc = GetParam(), .strategy = Strategy::kAsync, .limit = 30});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  RawPeer deaf(job, 2, 0, /*control=*/false);
  std::jthread asks([&] {
    for (int i = 0; i < 2'000; ++i) {
      if (!deaf.connection().Send(MessageOf(Frame::PULL, deaf.generation(), 0))) return;
    }
  });
  std::vector<std::jthread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&job, rank] { EXPECT_TRUE(Task(job, rank).Run().ok()); });
  }
  threads.clear();
  deaf.connection().Cancel();
}

// A server that admits every task and answers every pull with a given number of bytes.
void ServeBytes(wire::Connection& connection, size_t bytes) {
  wire::Outgoing welcome = MessageOf(Frame::WELCOME, 1, 0);
  welcome.frame.set_active(true);
  welcome.frame.set_limit(5);
  connection.Send(std::move(welcome));
  for (;;) {
    const auto message = connection.Receive();
    if (!message.ok()) return;
    wire::Outgoing answer = MessageOf(Frame::VALUES, 1, bytes);
    answer.frame.set_bucket(message->frame.bucket());
    connection.Send(std::move(answer));
  }
}

TEST(Protocol, RejectsValuesOfTheWrongSize) {
  for (const int64_t difference : {-4, 4, -1'000'000}) {
    Job job({.tasks = 1, .variables = DenseOnly()});
    job.StopServer(0);
    const int64_t size = job.plans()[0].shape.buckets[0].elements * 4;
    const auto bytes = static_cast<size_t>(std::max<int64_t>(0, size + difference));
    const auto listener = job.transport().Listen(
        job.addresses()[0], [bytes](wire::Connection& connection, const wire::Caller&) {
          ServeBytes(connection, bytes);
        });
    ASSERT_TRUE(listener.ok());
    const absl::Status status = Task(job, 0).Join();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("ps:0 sent ", bytes, " bytes as bucket")));
  }
}

}  // namespace
}  // namespace muster::train
