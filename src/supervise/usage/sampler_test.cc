#include "supervise/usage/sampler.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/testing.h"
#include "gtest/gtest.h"
#include "process/spawn.h"

namespace muster::supervise {
namespace {

constexpr double kMiB = 1 << 20;

process::Usage UsageOf(absl::Duration cpu, int64_t written) {
  process::Usage usage{.cpu = cpu, .memory_bytes = 1 << 20};
  usage.read_bytes = 0;
  usage.written_bytes = written;
  return usage;
}

TEST(SampleBetweenTest, ComputesRates) {
  const Sample sample = SampleBetween(UsageOf(absl::Seconds(1), 1000),
                                      UsageOf(absl::Seconds(4), 5000), absl::Seconds(2));
  EXPECT_EQ(sample.interval, absl::Seconds(2));
  EXPECT_DOUBLE_EQ(sample.cpu->mean, 1.5);
  EXPECT_DOUBLE_EQ(sample.memory->peak, kMiB);
  EXPECT_DOUBLE_EQ(sample.written->mean, 2000);
  EXPECT_DOUBLE_EQ(sample.read->mean, 0);
  EXPECT_FALSE(sample.sent.has_value());
}

TEST(SampleBetweenTest, ANetworkThatAppearsHasNoRateYet) {
  const process::Usage before = UsageOf(absl::ZeroDuration(), 0);
  process::Usage after = before;
  after.received_bytes = after.sent_bytes = 1000;
  EXPECT_FALSE(SampleBetween(before, after, absl::Seconds(1)).received.has_value());
  process::Usage replaced = after;
  replaced.received_bytes = 10;
  EXPECT_EQ(SampleBetween(after, replaced, absl::Seconds(1)).received->mean, 0);
}

// Runs shell commands as tasks of this process.
class SamplerTest : public testing::Test {
 protected:
  SamplerTest() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~SamplerTest() override {
    process::KillAllDescendants();
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

  void Start(int worker, const std::string& command, int attempt = 0) {
    const cluster::TaskId task{"worker", worker};
    auto environment = process::CurrentEnvironment();
    environment["MUSTER_JOB_ID"] = job_id_;
    environment["MUSTER_TASK"] = task.ToString();
    environment["MUSTER_ATTEMPT"] = absl::StrCat(attempt);
    const auto pid = process::Spawn({.argv = {"/bin/sh", "-c", command},
                                     .env = environment,
                                     .parent_death_signal = SIGKILL,
                                     .new_group = true});
    ASSERT_TRUE(pid.ok()) << pid.status();
    pids_[worker] = *pid;
    sampler_.Begin(task, attempt, *pid, clock_.Now());
  }
  std::vector<std::pair<cluster::TaskId, Sample>> Take() {
    while (clock_.Now() < sampler_.next_timer()) absl::SleepFor(absl::Milliseconds(5));
    return sampler_.Take(clock_.Now());
  }

  const base::Clock& clock_ = base::Clock::Real();
  const std::string job_id_ = absl::StrCat("sampler-test-", ::getpid());
  Sampler sampler_{job_id_};
  std::map<int, pid_t> pids_;
};

constexpr char kBurn[] = "while :; do :; done";

TEST_F(SamplerTest, SamplesOnlyWhileTasksRun) {
  EXPECT_EQ(sampler_.next_timer(), absl::InfiniteFuture());
  Start(0, kBurn);
  Start(1, "exec sleep 1000");
  const auto samples = Take();
  ASSERT_EQ(samples.size(), 2);
  EXPECT_EQ(samples[0].first, (cluster::TaskId{"worker", 0}));
  EXPECT_GT(samples[0].second.cpu->mean, 0.2);  // the machine may be busy
  EXPECT_LT(samples[0].second.cpu->mean, 1.2);
  EXPECT_GT(samples[0].second.memory->mean, 0);
  EXPECT_LT(samples[1].second.cpu->mean, 0.2);
  for (const int worker : {0, 1}) {
    ::kill(pids_[worker], SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, pids_[worker], &info, WEXITED | WNOWAIT), 0);
    sampler_.End({"worker", worker}, clock_.Now());
  }
  EXPECT_EQ(sampler_.next_timer(), absl::InfiniteFuture());
}

TEST_F(SamplerTest, CountsProcessesWhoseParentHasExited) {
  // The orphan leaves the group and the session and has this process as its parent.
  Start(0, absl::StrCat("(setsid sh -c '", kBurn, "' &); exec sleep 1000"));
  EXPECT_TRUE(base::Eventually([&] {
    const auto samples = Take();
    return samples.size() == 1 && samples[0].second.cpu->mean > 0.2;
  }));
}

TEST_F(SamplerTest, AnOrphanOfAnEarlierAttemptDoesNotCount) {
  Start(0, absl::StrCat("(setsid sh -c '", kBurn, "' &); exec sleep 1000"), /*attempt=*/0);
  ASSERT_TRUE(base::Eventually([&] { return Take()[0].second.cpu->mean > 0.2; }));
  Start(0, "exec sleep 1000", /*attempt=*/1);
  const auto samples = Take();
  ASSERT_EQ(samples.size(), 1);
  EXPECT_EQ(samples[0].second.attempt, 1);
  EXPECT_LT(samples[0].second.cpu->mean, 0.2);
}

TEST_F(SamplerTest, AShortAttemptHasOneSample) {
  Start(0, "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done");
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, pids_[0], &info, WEXITED | WNOWAIT), 0);
  const auto sample = sampler_.End({"worker", 0}, clock_.Now());
  ASSERT_TRUE(sample.has_value());
  EXPECT_GT(sample->cpu->mean, 0.1);
  EXPECT_FALSE(sample->memory.has_value());
  EXPECT_FALSE(sampler_.End({"worker", 0}, clock_.Now()).has_value());
}

TEST_F(SamplerTest, BecomesLessFrequentAfterAMinute) {
  Start(0, "exec sleep 1000");
  const absl::Time start = clock_.Now();
  sampler_.Take(start + absl::Seconds(30));
  EXPECT_EQ(sampler_.next_timer(), start + absl::Seconds(31));
  sampler_.Take(start + absl::Seconds(61));
  EXPECT_EQ(sampler_.next_timer(), start + absl::Seconds(66));
}

// CPU time of this process.
absl::Duration OwnCpu() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
}

TEST_F(SamplerTest, ManyTasksCostLittle) {
  for (int i = 0; i < 64; ++i) Start(i, "exec sleep 1000");
  const absl::Time start = clock_.Now();
  const absl::Duration before = OwnCpu();
  constexpr int kRounds = 10;
  for (int i = 1; i <= kRounds; ++i) {
    ASSERT_EQ(sampler_.Take(start + absl::Seconds(i)).size(), 64);
  }
  const absl::Duration round = (OwnCpu() - before) / kRounds;
  RecordProperty("microseconds_per_round", absl::ToInt64Microseconds(round));
  // Once per five seconds. The limit holds under the sanitizers and with many other processes.
  EXPECT_LT(round, absl::Milliseconds(200));
}

}  // namespace
}  // namespace muster::supervise
