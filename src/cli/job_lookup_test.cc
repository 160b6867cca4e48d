#include "cli/job_lookup.h"

#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<TaskRecord> Tasks() {
  std::vector<TaskRecord> tasks;
  for (const TaskId& id : {TaskId{"chief", 0}, TaskId{"worker", 0}, TaskId{"worker", 1}}) {
    TaskRecord task;
    task.id = id;
    tasks.push_back(task);
  }
  return tasks;
}

TEST(SelectTasksTest, NoneNamedMeansAll) {
  EXPECT_THAT(*SelectTasks(Tasks(), {}),
              ElementsAre(TaskId{"chief", 0}, TaskId{"worker", 0}, TaskId{"worker", 1}));
}

TEST(SelectTasksTest, ATaskOrARole) {
  EXPECT_THAT(*SelectTasks(Tasks(), {"worker:1"}), ElementsAre(TaskId{"worker", 1}));
  EXPECT_THAT(*SelectTasks(Tasks(), {"worker"}),
              ElementsAre(TaskId{"worker", 0}, TaskId{"worker", 1}));
  EXPECT_THAT(*SelectTasks(Tasks(), {"worker:1", "chief"}),
              ElementsAre(TaskId{"worker", 1}, TaskId{"chief", 0}));
}

TEST(SelectTasksTest, ATaskNamedTwiceIsSelectedOnce) {
  EXPECT_THAT(*SelectTasks(Tasks(), {"worker:1", "worker", "worker:1"}),
              ElementsAre(TaskId{"worker", 1}, TaskId{"worker", 0}));
}

TEST(SelectTasksTest, AMistakeNamesTheTasksThereAre) {
  const auto selected = SelectTasks(Tasks(), {"wroker:1"});
  EXPECT_EQ(selected.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(selected.status().message()),
              HasSubstr("no task 'wroker:1' (did you mean 'worker:1'?)"));
  EXPECT_THAT(std::string(selected.status().message()),
              HasSubstr("the job has chief:0, worker:0, worker:1"));
}

TEST(SelectTasksTest, AMistypedRoleIsCorrectedToo) {
  EXPECT_THAT(std::string(SelectTasks(Tasks(), {"wroker"}).status().message()),
              HasSubstr("did you mean 'worker'?"));
}

}  // namespace
}  // namespace muster::cli
