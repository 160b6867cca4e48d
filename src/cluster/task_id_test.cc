#include "cluster/task_id.h"

#include <set>

#include "gtest/gtest.h"

namespace muster::cluster {
namespace {

TEST(TaskIdTest, RoundTrips) {
  const absl::StatusOr<TaskId> task = TaskId::Parse("worker:12");
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ(task->role, "worker");
  EXPECT_EQ(task->index, 12);
  EXPECT_EQ(task->ToString(), "worker:12");
}

TEST(TaskIdTest, RoleAloneMeansItsFirstTask) {
  EXPECT_EQ(*TaskId::Parse("chief"), (TaskId{"chief", 0}));
}

TEST(TaskIdTest, ErrorsShowTheExpectedForm) {
  for (const char* text : {"", ":", ":1", "worker:", "worker:x", "worker:-1", "worker:+1",
                           "worker:1:2", "worker:99999999999", "wor ker:1", "worker: 1"}) {
    const absl::StatusOr<TaskId> task = TaskId::Parse(text);
    ASSERT_FALSE(task.ok()) << text;
    EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(task.status().message().find("worker:1"), std::string::npos) << task.status();
  }
}

TEST(TaskIdTest, SortsByIndexAsANumber) {
  const std::set<TaskId> tasks = {{"worker", 10}, {"worker", 2}, {"ps", 3}};
  EXPECT_EQ(*tasks.begin(), (TaskId{"ps", 3}));
  EXPECT_EQ(*tasks.rbegin(), (TaskId{"worker", 10}));
}

}  // namespace
}  // namespace muster::cluster
