// Integration of servers, tasks and chief, without failures.
#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/ps/testing.h"

namespace muster::train {
namespace {

using testing::HasSubstr;

using Tasks = std::vector<std::unique_ptr<Task>>;

Tasks AllTasks(Job& job, absl::Duration delay = absl::ZeroDuration()) {
  Tasks tasks;
  for (int rank = 0; rank < job.options().tasks; ++rank) {
    tasks.push_back(std::make_unique<Task>(job, rank));
    tasks.back()->set_delay(delay);
  }
  return tasks;
}

// Runs each task on its own thread to the end of the job.
void RunAll(Tasks& tasks) {
  std::vector<std::jthread> threads;
  for (auto& task : tasks) {
    threads.emplace_back([&task] {
      const absl::Status status = task->Run();
      EXPECT_TRUE(status.ok()) << status;
    });
  }
}

// Starts the servers, trains, and returns their final state.
ModelState Train(Job& job, absl::Duration delay = absl::ZeroDuration()) {
  auto coordinator = job.NewCoordinator();
  const absl::Status started = job.Start(*coordinator);
  EXPECT_TRUE(started.ok()) << started;
  Tasks tasks = AllTasks(job, delay);
  RunAll(tasks);
  return job.Now();
}

struct SyncCase {
  int tasks;
  int servers;
  bool grpc;
};

class SyncTest : public testing::TestWithParam<SyncCase> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SyncTest,
                         testing::Values(SyncCase{1, 1, false}, SyncCase{1, 3, false},
                                         SyncCase{2, 1, false}, SyncCase{2, 2, true},
                                         SyncCase{3, 2, false}, SyncCase{4, 1, false},
                                         SyncCase{4, 3, false}, SyncCase{4, 3, true}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.tasks, "tasks", info.param.servers,
                                               "servers", info.param.grpc ? "Grpc" : "");
                         });

TEST_P(SyncTest, EqualsTheSerialComputationBitForBit) {
  Job job({.tasks = GetParam().tasks, .servers = GetParam().servers, .grpc = GetParam().grpc});
  job.fake().set_jitter(absl::Microseconds(200));
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job, absl::Microseconds(500));
  RunAll(tasks);
  const ModelState serial = job.SerialResult(5);
  EXPECT_EQ(job.Now(), serial);
  for (const auto& task : tasks) {
    EXPECT_EQ(task->step(), 5);
    EXPECT_EQ(task->sequence(), 5);
    for (size_t v = 0; v < serial.values.size(); ++v) {
      if (job.options().variables[v].kind == Variable::Kind::kDense) {
        EXPECT_EQ(task->values()[v], serial.values[v]);
      }
    }
  }
}

class OptimizerTest : public testing::TestWithParam<OptimizerConfig::Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, OptimizerTest,
                         testing::Values(OptimizerConfig::Kind::kSgd, OptimizerConfig::Kind::kAdamW,
                                         OptimizerConfig::Kind::kAdagrad,
                                         OptimizerConfig::Kind::kRmsProp));

TEST_P(OptimizerTest, AnyNumberOfSlots) {
  for (const double momentum : {0.0, 0.9}) {
    Job job({.tasks = 2, .servers = 2, .optimizer = {.kind = GetParam(), .momentum = momentum}});
    EXPECT_EQ(Train(job), job.SerialResult(5));
  }
}

TEST(Sync, SixteenBitsOnTheWire) {
  for (const auto precision : {wire::Frame::FLOAT16, wire::Frame::BFLOAT16}) {
    Job job({.tasks = 3, .servers = 2, .grpc = true, .precision = precision});
    EXPECT_EQ(Train(job), job.SerialResult(5));
  }
}

TEST(Sync, ATaskSkipsItsGradient) {
  Job job({.tasks = 3});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  tasks[1]->set_skips([](int64_t step) { return step == 2; });
  for (auto& task : tasks) {
    if (task != tasks[1]) task->set_skips([](int64_t step) { return step == 3; });
  }
  RunAll(tasks);
  Serial serial = job.NewSerial();
  for (int64_t step = 0; step < 5; ++step) {
    serial.Step(step, step == 2   ? std::set<int>{0, 2}
                      : step == 3 ? std::set<int>{1}
                                  : std::set<int>{0, 1, 2});
  }
  EXPECT_EQ(job.Now(), serial.state);
}

TEST(Sync, AStepThatAllTasksSkipChangesNothing) {
  Job job({.tasks = 2, .variables = DenseOnly(), .limit = 1});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  for (auto& task : tasks) task->set_skips([](int64_t) { return true; });
  RunAll(tasks);
  EXPECT_EQ(job.Now(), job.SerialResult(0));
  EXPECT_EQ(tasks[0]->step(), 1);
}

TEST(Sync, WaitsForALateTask) {
  Job job({.tasks = 2, .servers = 2});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  std::jthread first([&] { EXPECT_TRUE(tasks[0]->Run().ok()); });
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_TRUE(tasks[1]->Run().ok());
  first.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST(Sync, TasksMayStartBeforeTheChiefAndTheServers) {
  Job job({.tasks = 2, .servers = 2, .grpc = true});
  job.StopServer(1);
  Tasks tasks = AllTasks(job);
  std::vector<std::jthread> threads;
  for (auto& task : tasks) {
    threads.emplace_back([&task] { EXPECT_TRUE(task->Run().ok()); });
  }
  auto coordinator = job.NewCoordinator();
  std::jthread chief([&] { EXPECT_TRUE(job.Start(*coordinator).ok()); });
  absl::SleepFor(absl::Milliseconds(100));
  job.StartServer(1);
  threads.clear();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST(Sync, MoreServersThanVariables) {
  Job job({.tasks = 2, .servers = 5, .variables = DenseOnly()});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  ASSERT_EQ(job.plans().back().shape.bucket_count(), 0);
  Tasks tasks = AllTasks(job);
  for (auto& task : tasks) ASSERT_TRUE(task->Join().ok());
  std::jthread other([&] { EXPECT_TRUE(tasks[1]->Run().ok()); });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(tasks[0]->Step().ok());
    ASSERT_TRUE(tasks[0]->Join().ok());
    EXPECT_EQ(tasks[0]->step(), i + 1) << "a server without buckets counts no steps";
  }
  EXPECT_TRUE(tasks[0]->Run().ok());
  other.join();
  EXPECT_EQ(job.Now(), job.SerialResult(5));
}

TEST(Sync, AJobThatIsAlreadyDone) {
  Job job({.tasks = 1, .limit = 5});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator, /*step=*/5).ok());
  Task task(job, 0);
  EXPECT_TRUE(task.Run().ok());
  EXPECT_EQ(task.step(), 5);
  EXPECT_EQ(job.Now(), job.SerialResult(0));
}

TEST(Sync, AllTasksEndAtALimitSetDuringTraining) {
  for (int round = 0; round < 10; ++round) {
    Job job({.tasks = 3, .servers = 2, .limit = 1'000'000});
    job.fake().set_jitter(absl::Microseconds(50));
    auto coordinator = job.NewCoordinator();
    ASSERT_TRUE(job.Start(*coordinator).ok());
    Tasks tasks = AllTasks(job);
    std::vector<std::jthread> workers;
    for (int rank = 1; rank < 3; ++rank) {
      workers.emplace_back([&, rank] { EXPECT_TRUE(tasks[rank]->Run().ok()); });
    }
    // The chief may end the job at its own step when the others are already ahead.
    ASSERT_TRUE(tasks[0]->Join().ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(tasks[0]->Step().ok());
    ASSERT_TRUE(coordinator->EndAt(3 + round % 3).ok());
    EXPECT_TRUE(tasks[0]->Run().ok());
    workers.clear();
    for (const auto& task : tasks) EXPECT_EQ(task->step(), 3 + round % 3);
    EXPECT_EQ(job.Now(), job.SerialResult(3 + round % 3));
  }
}

// The limit arrives just after the task has checked it.
TEST(Sync, ALimitBetweenTwoStepsTakesEffect) {
  Job job({.tasks = 1, .variables = DenseOnly(), .limit = 100});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task task(job, 0);
  ASSERT_TRUE(task.Join().ok());
  ASSERT_TRUE(*task.Step());
  ASSERT_TRUE(coordinator->EndAt(1).ok());
  while (task.client().limit() != 1) absl::SleepFor(absl::Milliseconds(1));
  task.client().Begin(1, 1);
  for (const auto& [server, bucket] : task.Buckets()) task.Push(server, bucket);
  EXPECT_TRUE(absl::IsCancelled(task.client().Wait()));
}

TEST(Sync, ASnapshotIsTheStateOfItsStep) {
  Job job({.tasks = 3, .servers = 2, .grpc = true, .limit = 8});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  std::vector<std::jthread> workers;
  for (int rank = 1; rank < 3; ++rank) {
    workers.emplace_back([&, rank] { EXPECT_TRUE(tasks[rank]->Run().ok()); });
  }
  ASSERT_TRUE(tasks[0]->Join().ok());
  for (int64_t step = 0; step < 8; ++step) {
    auto snapshot = coordinator->TakeSnapshot();
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    EXPECT_EQ((*snapshot)->state()["step"], step);
    EXPECT_EQ((*snapshot)->state()["cursors"], (std::vector<int64_t>(3, step)));
    ASSERT_TRUE(*tasks[0]->Step());  // updates before the snapshot is read
    auto state = job.Read(**snapshot);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(*state, job.SerialResult(step));
  }
}

TEST(Sync, AnOldSnapshotIsNotMixedWithALaterOne) {
  Job job({.tasks = 1, .variables = DenseOnly()});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  auto first = coordinator->TakeSnapshot();
  ASSERT_TRUE(first.ok());
  auto second = coordinator->TakeSnapshot();
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(absl::IsAborted(job.Read(**first).status()));
  EXPECT_TRUE(job.Read(**second).ok());
}

TEST(Async, MakesExactlyTheStepsOfTheJob) {
  Job job({.tasks = 4, .servers = 2, .strategy = Strategy::kAsync, .limit = 50});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job, absl::Microseconds(200));
  RunAll(tasks);
  int64_t sum = 0;
  for (const auto& task : tasks) {
    EXPECT_EQ(task->step(), 50);
    sum += task->sequence();
  }
  EXPECT_EQ(sum, 50);
  auto snapshot = coordinator->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ((*snapshot)->state()["step"], 50);
}

TEST(Async, OneTaskAloneIsDeterministic) {
  Job job({.tasks = 1, .servers = 2, .strategy = Strategy::kAsync});
  EXPECT_EQ(Train(job, absl::Microseconds(100)), job.SerialResult(5));
}

TEST(Async, EndsEarlier) {
  Job job({.tasks = 3, .variables = DenseOnly(), .strategy = Strategy::kAsync, .limit = 1'000'000});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  std::jthread chief([&] {
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_TRUE(coordinator->EndAt(1).ok());
  });
  RunAll(tasks);
  int64_t sum = 0;
  for (const auto& task : tasks) sum += task->sequence();
  for (const auto& task : tasks)
    EXPECT_EQ(task->step(), sum) << "all tasks get the same final step";
}

TEST(Bounded, NoTaskIsFurtherAheadThanAllowed) {
  constexpr int64_t kStaleness = 2;
  Job job({.tasks = 3,
           .variables = DenseOnly(),
           .strategy = Strategy::kBounded,
           .limit = 60,
           .staleness = kStaleness});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  tasks[2]->set_delay(absl::Milliseconds(2));
  std::atomic<int64_t> sequences[3] = {};
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      ASSERT_TRUE(tasks[rank]->Join().ok());
      for (;;) {
        const auto more = tasks[rank]->Begin();
        ASSERT_TRUE(more.ok()) << more.status();
        if (!*more) return;
        // A task counts its step a little later than the server.
        const int64_t slowest =
            std::min({sequences[0].load(), sequences[1].load(), sequences[2].load()});
        EXPECT_LE(tasks[rank]->sequence() - slowest, kStaleness + 1);
        for (const auto& [server, bucket] : tasks[rank]->Buckets()) {
          if (rank == 2) absl::SleepFor(absl::Microseconds(300));
          tasks[rank]->Push(server, bucket);
        }
        ASSERT_TRUE(tasks[rank]->Finish().ok());
        sequences[rank] = tasks[rank]->sequence();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(sequences[0] + sequences[1] + sequences[2], 60);
  EXPECT_LE(std::max({sequences[0].load(), sequences[1].load()}) - sequences[2], kStaleness + 1);
}

TEST(Backup, AJobContinuesWithoutASilentTask) {
  Job job({.tasks = 3, .servers = 2, .limit = 20, .backup_tasks = 1});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job);
  ASSERT_TRUE(tasks[0]->Join().ok());  // the chief, which then stays silent
  std::vector<std::jthread> workers;
  for (int rank = 1; rank < 3; ++rank) {
    workers.emplace_back([&, rank] { EXPECT_TRUE(tasks[rank]->Run().ok()); });
  }
  workers.clear();
  EXPECT_EQ(tasks[1]->step(), 20);
  EXPECT_EQ(tasks[2]->step(), 20);
  // When it continues, it is at the step of the others.
  ASSERT_TRUE(*tasks[0]->Step());
  EXPECT_EQ(tasks[0]->step(), 20);
  EXPECT_FALSE(*tasks[0]->Step());
}

TEST(Backup, ASlowTaskCatchesUp) {
  Job job({.tasks = 3, .servers = 2, .limit = 60, .backup_tasks = 1});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Tasks tasks = AllTasks(job, absl::Microseconds(100));
  tasks[0]->set_delay(absl::Milliseconds(1));
  RunAll(tasks);
  for (const auto& task : tasks) EXPECT_EQ(task->step(), 60);
}

TEST(Backup, ARejoiningTaskGetsTheNewestValues) {
  Job job({.tasks = 2, .limit = 10, .backup_tasks = 1});
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  Task worker(job, 1);
  EXPECT_TRUE(worker.Run().ok());
  Task chief(job, 0);
  ASSERT_TRUE(chief.Join().ok());
  EXPECT_EQ(chief.step(), 10);
}

TEST(EndOfJob, ServersEndOnFinish) {
  Job job({.tasks = 1, .grpc = true});
  std::jthread server([&] {
    const absl::Status status = job.server(0).Run(absl::Seconds(30), absl::Seconds(10));
    EXPECT_TRUE(status.ok()) << status;
  });
  auto coordinator = job.NewCoordinator();
  ASSERT_TRUE(job.Start(*coordinator).ok());
  {
    Task task(job, 0);
    ASSERT_TRUE(task.Run().ok());
    EXPECT_TRUE(coordinator->EndJob().ok());
  }
  server.join();
}

TEST(EndOfJob, TasksWaitForTheChiefToEndTheJob) {
  for (const Strategy strategy : {Strategy::kSync, Strategy::kAsync}) {
    Job job({.tasks = 2, .servers = 2, .strategy = strategy});
    auto coordinator = job.NewCoordinator();
    ASSERT_TRUE(job.Start(*coordinator).ok());
    Tasks tasks = AllTasks(job);
    RunAll(tasks);
    absl::Notification ended;
    std::jthread waits([&] {
      const absl::Status status = tasks[1]->client().AwaitEnd();
      EXPECT_TRUE(status.ok()) << status;
      ended.Notify();
    });
    EXPECT_FALSE(ended.WaitForNotificationWithTimeout(absl::Milliseconds(30)));
    ASSERT_TRUE(coordinator->EndJob().ok());
    waits.join();
    // So does a task that rejoins after the end.
    ASSERT_TRUE(tasks[0]->Join().ok());
    EXPECT_TRUE(tasks[0]->client().AwaitEnd().ok());
  }
}

TEST(EndOfJob, AServerWithoutTasksLogsIt) {
  Job job({.tasks = 1});
  const absl::Status status = job.server(0).Run(absl::Milliseconds(20), absl::ZeroDuration());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("no task was connected to ps:0 for 20ms"));
}

}  // namespace
}  // namespace muster::train
