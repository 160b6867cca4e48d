#include "jobs/results/attempts.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;

absl::Time At(int second) { return absl::FromUnixSeconds(second); }

job::Event TaskEvent(int second, const std::string& task, const std::string& message) {
  return {.time = At(second), .kind = "task", .subject = task, .message = message};
}

std::vector<std::string> Described(const std::vector<Attempt>& attempts) {
  std::vector<std::string> lines;
  for (const Attempt& attempt : attempts) {
    lines.push_back(absl::StrCat(
        attempt.task.ToString(), "/", attempt.number, " ", absl::ToUnixSeconds(attempt.started),
        "-", attempt.finished ? absl::StrCat(absl::ToUnixSeconds(*attempt.finished)) : "", " ",
        attempt.outcome));
  }
  return lines;
}

TEST(AttemptsTest, FollowsRestarts) {
  const std::vector<job::Event> events = {
      TaskEvent(1, "ps:0", "started; waiting until it listens"),
      TaskEvent(2, "ps:0", "running"),
      TaskEvent(3, "worker:0", "running"),
      TaskEvent(5, "worker:0", "failed: exit code 1"),
      {.time = At(5), .kind = "restart", .subject = "worker:0", .message = "restarts in 1s"},
      TaskEvent(6, "worker:0", "running on host-b"),
      TaskEvent(9, "worker:0", "succeeded"),
  };
  const std::vector<job::TaskRecord> tasks = {
      {.id = {"ps", 0}, .state = job::TaskState::kRunning},
      {.id = {"worker", 0}, .state = job::TaskState::kSucceeded, .attempt = 1, .finished = At(9)}};
  EXPECT_THAT(Described(AttemptsOf(events, tasks)),
              ElementsAre("ps:0/0 1- running", "worker:0/0 3-5 failed: exit code 1",
                          "worker:0/1 6-9 succeeded"));
}

TEST(AttemptsTest, AnAttemptEndsWhenTheNextOneStarts) {
  const std::vector<job::Event> events = {TaskEvent(1, "worker:0", "running"),
                                          TaskEvent(4, "worker:0", "running")};
  const std::vector<job::TaskRecord> tasks = {{.id = {"worker", 0},
                                               .state = job::TaskState::kStopped,
                                               .attempt = 1,
                                               .finished = At(7),
                                               .reason = "stopped by the user"}};
  EXPECT_THAT(Described(AttemptsOf(events, tasks)),
              ElementsAre("worker:0/0 1-4 replaced", "worker:0/1 4-7 stopped by the user"));
}

TEST(AttemptsTest, IgnoresOddEvents) {
  const std::vector<job::Event> events = {TaskEvent(1, "", "running"),
                                          TaskEvent(2, "no task:x", "running"),
                                          TaskEvent(3, "worker:0", "failed: never seen running")};
  EXPECT_THAT(AttemptsOf(events, {}), testing::IsEmpty());
}

}  // namespace
}  // namespace muster::jobs
