// Integration of servers, tasks and chief: failures.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/ps/testing.h"

namespace muster::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using wire::Frame;

using Tasks = std::vector<std::unique_ptr<Task>>;

constexpr absl::Duration kSoon = absl::Seconds(30);

struct FaultCase {
  int servers;
  bool grpc;
};

class FaultTest : public testing::TestWithParam<FaultCase> {
 protected:
  JobOptions Options(int tasks) const {
    return {.tasks = tasks, .servers = GetParam().servers, .grpc = GetParam().grpc};
  }
};
INSTANTIATE_TEST_SUITE_P(
    Sizes, FaultTest, testing::Values(FaultCase{1, false}, FaultCase{3, false}, FaultCase{2, true}),
    [](const auto& info) {
      return absl::StrCat(info.param.servers, "servers", info.param.grpc ? "Grpc" : "");
    });

TEST_P(FaultTest, APushSentTwiceCountsOnce) {
  Job job(Options(2));
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&job, rank] {
      Task task(job, rank);
      ASSERT_TRUE(task.Join().ok());
      while (*task.Begin()) {
        for (int again = 0; again < 2; ++again) {
          for (const auto& [server, bucket] : task.Buckets()) task.Push(server, bucket);
        }
        ASSERT_TRUE(task.Finish().ok());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

// Pushes some buckets of a step, then stops.
void HalfAStep(Task& task) {
  ASSERT_TRUE(*task.Begin());
  const auto buckets = task.Buckets();
  for (size_t i = 0; i < buckets.size() / 2; ++i) task.Push(buckets[i].first, buckets[i].second);
}

TEST_P(FaultTest, AProcessThatJoinsAgainInTheMiddleOfAStep) {
  Job job(Options(2));
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  std::jthread other([&job] { EXPECT_TRUE(Task(job, 1).Run().ok()); });
  Task task(job, 0);
  for (int64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(task.Join().ok());
    ASSERT_EQ(task.step(), step);
    HalfAStep(task);
    ASSERT_TRUE(task.Join().ok());
    ASSERT_EQ(task.step(), step);
    ASSERT_TRUE(*task.Step());
  }
  other.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST_P(FaultTest, AProcessThatIsReplacedInTheMiddleOfAStep) {
  Job job(Options(2));
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  std::jthread other([&job] { EXPECT_TRUE(Task(job, 1).Run().ok()); });
  std::vector<std::unique_ptr<Task>> attempts;
  for (int attempt = 0; attempt < 5; ++attempt) {
    // The earlier processes are still connected, and silent.
    attempts.push_back(std::make_unique<Task>(job, 0, attempt));
    ASSERT_TRUE(attempts.back()->Join().ok());
    ASSERT_EQ(attempts.back()->step(), attempt);
    ASSERT_TRUE(*attempts.back()->Step());
    if (attempt < 4) HalfAStep(*attempts.back());
  }
  other.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST(Faults, ConnectionsThatAreCutAtAnyMoment) {
  for (int round = 0; round < 5; ++round) {
    Job job({.tasks = 3, .servers = 2, .limit = 30});
    job.fake().set_jitter(absl::Microseconds(30));
    auto coordinator = job.NewCoordinator();
    ASSERT_TRUE(job.Start(*coordinator).ok());
    std::atomic<int> running = 3;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const absl::Status status = Task(job, rank).Run();
        EXPECT_TRUE(status.ok()) << status;
        --running;
      });
    }
    std::mt19937 random(round);
    while (running > 0) {
      absl::SleepFor(absl::Milliseconds(random() % 40));
      job.fake().Cut(job.addresses()[random() % 2]);
    }
    threads.clear();
    EXPECT_EQ(job.Now(), job.SerialResult(30));
  }
}

// Begin fails, reports the end of the job, or is granted a step.
bool DieSomewhere(Task& task, std::mt19937& random) {
  if (!task.Join().ok()) return false;
  for (;;) {
    const auto more = task.Begin();
    if (!more.ok()) return false;
    if (!*more) return true;
    const auto buckets = task.Buckets();
    const bool dies = random() % 4 == 0;
    const size_t pushes = dies ? random() % (buckets.size() + 1) : buckets.size();
    for (size_t i = 0; i < pushes; ++i) task.Push(buckets[i].first, buckets[i].second);
    if (dies) return false;
    if (!task.Finish().ok()) return false;
  }
}

TEST(Faults, AsyncMakesExactlyItsStepsDespiteFailures) {
  for (const Strategy strategy : {Strategy::kAsync, Strategy::kBounded}) {
    Job job({.tasks = 3, .servers = 2, .strategy = strategy, .limit = 60, .staleness = 3});
    auto coordinator = job.NewCoordinator();
    ASSERT_TRUE(job.Start(*coordinator).ok());
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&job, rank] {
        std::mt19937 random(static_cast<uint32_t>(rank));
        for (int attempt = 0;; ++attempt) {
          Task task(job, rank, attempt);
          if (DieSomewhere(task, random)) return;
        }
      });
    }
    threads.clear();
    auto snapshot = coordinator->TakeSnapshot();
    ASSERT_TRUE(snapshot.ok());
    EXPECT_EQ((*snapshot)->state()["step"], 60);
    const auto cursors = (*snapshot)->state()["cursors"].get<std::vector<int64_t>>();
    EXPECT_EQ(cursors[0] + cursors[1] + cursors[2], 60);
  }
}

TEST(Faults, AsyncOneTaskThatRejoinsLosesAndRepeatsNothing) {
  Job job({.tasks = 1, .servers = 2, .strategy = Strategy::kAsync});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task task(job, 0);
  ASSERT_TRUE(task.Join().ok());
  for (int i = 0; i < 5; ++i) {
    // All that was pushed is applied, to some buckets; the rest of the step comes from values that
    // were read before it began.
    const auto values = task.values();
    ASSERT_TRUE(*task.Begin());
    const auto buckets = task.Buckets();
    for (size_t b = 0; b < buckets.size() / 2; ++b) {
      task.Push(buckets[b].first, buckets[b].second);
    }
    ASSERT_TRUE(task.client().Join(kSoon).ok());
    ASSERT_TRUE(*task.Begin());
    for (const auto& [server, bucket] : buckets) task.Push(server, bucket);
    ASSERT_TRUE(task.Finish().ok());
    EXPECT_EQ(task.sequence(), i + 1);
  }
  EXPECT_FALSE(*task.Begin());
}

TEST_P(FaultTest, AnIndexThatIsTaken) {
  Job job(Options(2));
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task first(job, 1, /*attempt=*/1);
  ASSERT_TRUE(first.Join().ok());
  for (const int attempt : {0, 1}) {
    Task second(job, 1, attempt);
    const absl::Status status = second.Join(absl::Milliseconds(200));
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("worker:0 is taken by process "),
                                        HasSubstr("give it another index")));
  }
  // A later attempt is the same task after a restart: it replaces the earlier one.
  Task later(job, 1, /*attempt=*/2);
  ASSERT_TRUE(later.Join().ok());
  first.client().Begin(0, 0);
  EXPECT_TRUE(absl::IsUnavailable(first.client().Wait()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(first.Join(absl::Milliseconds(200))));
  std::jthread chief([&job] { EXPECT_TRUE(Task(job, 0).Run().ok()); });
  EXPECT_TRUE(later.Run().ok());
  chief.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST(Faults, AnotherCluster) {
  Job job({.tasks = 2});
  Frame hello = job.HelloOf(1, 0, 77);
  hello.set_cluster("{}");
  PsClient client(job.transport(), {.hello = hello,
                                    .addresses = job.addresses(),
                                    .shapes = {job.plans()[0].shape},
                                    .log = [](const std::string&) {}});
  const auto position = client.Join(kSoon);
  EXPECT_TRUE(absl::IsFailedPrecondition(position.status()));
  EXPECT_THAT(position.status().message(),
              AllOf(HasSubstr("ps:0"), HasSubstr("belongs to another cluster"),
                    HasSubstr("start all tasks with the same TF_CONFIG"), Not(HasSubstr("worker"))))
      << "an outsider must not receive the cluster";
  EXPECT_TRUE(job.Logged(R"(this task's is {"chief")"));
  const auto control = PsControl::Connect(job.transport(), job.addresses()[0], hello, kSoon);
  EXPECT_TRUE(absl::IsFailedPrecondition(control.status()));
}

TEST(Faults, ATaskThatIsNotInTheCluster) {
  Job job({.tasks = 2});
  PsClient client(job.transport(), {.hello = job.HelloOf(7, 0, 77),
                                    .addresses = job.addresses(),
                                    .shapes = {job.plans()[0].shape},
                                    .log = [](const std::string&) {}});
  const auto position = client.Join(kSoon);
  EXPECT_TRUE(absl::IsNotFound(position.status()));
  EXPECT_THAT(position.status().message(), HasSubstr("worker:6 is not a training task"));
}

TEST_P(FaultTest, AServerThatLostItsValues) {
  Job job(Options(2));
  const int lost = GetParam().servers - 1;
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks;
  for (int rank = 0; rank < 2; ++rank) tasks.push_back(std::make_unique<Task>(job, rank));
  std::atomic<int> in_the_middle = 0;
  std::vector<std::jthread> threads;
  for (auto& task : tasks) {
    threads.emplace_back([&] {
      ASSERT_TRUE(task->Join().ok());
      ASSERT_TRUE(*task->Step());
      ASSERT_TRUE(*task->Step());
      ++in_the_middle;
      EXPECT_TRUE(task->Run().ok());
      EXPECT_EQ(task->step(), 5);
    });
  }
  while (in_the_middle < 2) absl::SleepFor(absl::Milliseconds(1));
  const uint64_t before = tasks[0]->generation();
  job.StopServer(lost);
  job.StartServer(lost);
  absl::Status status;
  do {
    status = job.Start(*coordinator);  // from the beginning
  } while (absl::IsUnavailable(status) || absl::IsAborted(status));
  ASSERT_TRUE(status.ok()) << status;
  threads.clear();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
  EXPECT_GT(tasks[0]->generation(), before);
}

TEST(Faults, ATaskOfAnEarlierGenerationIsDisconnected) {
  Job job({.tasks = 1, .servers = 2});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task task(job, 0);
  ASSERT_TRUE(task.Join().ok());
  job.StopServer(1);
  job.StartServer(1);
  ASSERT_TRUE(job.Start(*coordinator).ok());
  ASSERT_TRUE(task.client().Join(kSoon).ok());  // a process that ignores the generation
  ASSERT_TRUE(task.Join().ok());
  EXPECT_TRUE(task.Run().ok());
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST(Faults, NoServerAnswers) {
  Job job({.tasks = 1, .servers = 2, .grpc = true, .report_interval = absl::Milliseconds(50)});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  job.StopServer(1);
  Task task(job, 0);
  // One attempt to connect takes 5 s; then the missing peer is logged.
  const absl::Status status = task.Join(absl::Milliseconds(5500));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("ps:1"));
  EXPECT_TRUE(job.Logged("waiting for ps:1"));
  auto chief = job.NewCoordinator();
  const absl::Status chiefs = chief->EnsureActive(
      []() -> absl::StatusOr<std::unique_ptr<ValueSource>> { return absl::InternalError(""); },
      absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(chiefs)) << chiefs;
  EXPECT_THAT(chiefs.message(), HasSubstr("ps:1"));
}

TEST(Faults, TheChiefIsMissing) {
  Job job({.tasks = 2, .report_interval = absl::Milliseconds(20)});
  Task task(job, 1);
  const absl::Status status = task.Join(absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("the chief to initialize ps:0"));
  EXPECT_TRUE(job.Logged("waiting for the chief"));
}

TEST(Faults, AServerWhoseTasksHaveLeftLogsIt) {
  Job job({.tasks = 1, .report_interval = absl::Milliseconds(20)});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  std::jthread server(
      [&job] { EXPECT_TRUE(job.server(0).Run(absl::Seconds(30), absl::Seconds(1)).ok()); });
  while (!job.Logged("no task is connected; waiting for the chief")) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_TRUE(Task(job, 0).Run().ok());
  EXPECT_TRUE(coordinator->EndJob().ok());
}

// Accepts connections and never answers.
TEST(Faults, AServerThatHangs) {
  Job job({.tasks = 1});
  job.StopServer(0);
  auto listener = job.transport().Listen(job.addresses()[0],
                                         [](wire::Connection& connection, const wire::Caller&) {
                                           while (connection.Receive().ok()) {
                                           }
                                         });
  ASSERT_TRUE(listener.ok());
  Task task(job, 0);
  const absl::Time before = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(task.Join(absl::Milliseconds(200))));
  EXPECT_LT(absl::Now() - before, absl::Seconds(10));
}

TEST(Faults, AWaitingTaskLogsTheMissingTasks) {
  Job job({.tasks = 4, .servers = 2, .report_interval = absl::Milliseconds(50)});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task silent(job, 2);
  ASSERT_TRUE(silent.Join().ok());
  std::vector<std::jthread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&job, rank] { EXPECT_TRUE(Task(job, rank).Run().ok()); });
  }
  while (!job.Logged("step 0: waiting for worker:1, worker:2 (not connected)")) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  threads.emplace_back([&job] { EXPECT_TRUE(Task(job, 3).Run().ok()); });
  while (!job.Logged("step 0: waiting for worker:1")) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(silent.Run().ok());
}

TEST(Faults, ATaskTooFarAheadLogsTheSlowest) {
  Job job({.tasks = 2,
           .strategy = Strategy::kBounded,
           .limit = 6,
           .staleness = 1,
           .report_interval = absl::Milliseconds(50)});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task slow(job, 1);
  ASSERT_TRUE(slow.Join().ok());
  std::jthread fast([&job] { EXPECT_TRUE(Task(job, 0).Run().ok()); });
  while (!job.Logged("waiting for worker:0")) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(slow.Run().ok());
}

TEST(Faults, AServerEndsWhileTasksAreConnected) {
  for (const bool grpc : {false, true}) {
    Job job({.tasks = 2, .grpc = grpc});
    auto coordinator = job.NewCoordinator();
    ASSERT_TRUE(job.Start(*coordinator).ok());
    Task task(job, 0);
    ASSERT_TRUE(task.Join().ok());
    std::jthread waits([&] {
      const auto more = task.Step();
      EXPECT_TRUE(absl::IsUnavailable(more.status())) << more.status();
      EXPECT_THAT(more.status().message(), HasSubstr("ps:0"));
    });
    absl::SleepFor(absl::Milliseconds(20));
    job.StopServer(0);
    waits.join();
  }
}

TEST_P(FaultTest, EveryWaitTimesOut) {
  JobOptions options = Options(2);
  options.peer_timeout = absl::Milliseconds(200);
  Job job(options);
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task task(job, 1);
  ASSERT_TRUE(task.Join().ok());
  const absl::Status step = task.Step().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(step)) << step;
  EXPECT_EQ(std::string(step.message()),
            "timed out after 200ms waiting for chief:0 (not connected)");
  const absl::Status end = task.client().AwaitEnd();
  EXPECT_TRUE(absl::IsDeadlineExceeded(end)) << end;
  EXPECT_EQ(std::string(end.message()),
            "timed out after 200ms waiting for the chief to end the job");
}

TEST_P(FaultTest, AServerThatAllTasksLeftTimesOut) {
  Job job(Options(1));
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  auto task = std::make_unique<Task>(job, 0);
  ASSERT_TRUE(task->Join().ok());
  absl::Status status;
  std::jthread server(
      [&] { status = job.server(0).Run(absl::Milliseconds(200), absl::ZeroDuration()); });
  absl::SleepFor(absl::Milliseconds(500));
  ASSERT_TRUE(task->Step().ok());  // still connected
  task.reset();
  server.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;  // retryable
  EXPECT_THAT(status.message(), HasSubstr("no task was connected to ps:0 for 200ms"));
}

TEST_P(FaultTest, AServerThatNoTaskJoinsTimesOut) {
  Job job(Options(1));
  const absl::Status status = job.server(0).Run(absl::Milliseconds(50), absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// A suspended process, or a machine that hangs: its sockets accept, nothing answers.
TEST(Faults, AServerThatDoesNotAnswerIsLost) {
  Job job({.tasks = 1, .call_timeout = absl::Milliseconds(50)});
  job.StopServer(0);
  const auto silent =
      job.fake().Listen(job.addresses()[0], [](wire::Connection& connection, const wire::Caller&) {
        connection.Send({});  // answers HELLO only
        while (connection.Receive().ok()) continue;
      });
  ASSERT_TRUE(silent.ok()) << silent.status();
  const absl::Status status = job.Start(*job.NewCoordinator());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("ps:0: no response within 50ms"));
}

}  // namespace
}  // namespace muster::train
