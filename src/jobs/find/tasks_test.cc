#include "jobs/find/tasks.h"

#include "gmock/gmock.h"
#include "jobs/start/run.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kJobId[] = "mnist-x7k2q";

std::vector<job::TaskRecord> Tasks() {
  std::vector<job::TaskRecord> tasks;
  for (const cluster::TaskId& id :
       {cluster::TaskId{"chief", 0}, cluster::TaskId{"worker", 0}, cluster::TaskId{"worker", 1}}) {
    job::TaskRecord task;
    task.id = id;
    tasks.push_back(task);
  }
  return tasks;
}

TEST(SelectTasksTest, NoSelectorSelectsAllTasks) {
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {}),
              ElementsAre(cluster::TaskId{"chief", 0}, cluster::TaskId{"worker", 0},
                          cluster::TaskId{"worker", 1}));
}

TEST(SelectTasksTest, SelectsATaskOrARole) {
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {"worker:1"}),
              ElementsAre(cluster::TaskId{"worker", 1}));
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {"worker"}),
              ElementsAre(cluster::TaskId{"worker", 0}, cluster::TaskId{"worker", 1}));
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {"worker:1", "chief"}),
              ElementsAre(cluster::TaskId{"worker", 1}, cluster::TaskId{"chief", 0}));
}

TEST(SelectTasksTest, ATaskNamedTwiceIsSelectedOnce) {
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {"worker:1", "worker", "worker:1"}),
              ElementsAre(cluster::TaskId{"worker", 1}, cluster::TaskId{"worker", 0}));
}

TEST(SelectTasksTest, AnErrorListsTheTasks) {
  const auto selected = SelectTasks(kJobId, Tasks(), {"wroker:1"});
  EXPECT_EQ(selected.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(selected.status().message()),
              HasSubstr("no task 'wroker:1' (did you mean 'worker:1'?)"));
  EXPECT_THAT(std::string(selected.status().message()),
              HasSubstr("the job has chief:0, worker:0, worker:1"));
}

TEST(SelectTasksTest, SuggestsTheClosestRole) {
  EXPECT_THAT(std::string(SelectTasks(kJobId, Tasks(), {"wroker"}).status().message()),
              HasSubstr("did you mean 'worker'?"));
}

TEST(SelectTasksTest, IdsAreStableAndDistinct) {
  // Users keep ids in scripts: the function must never change.
  EXPECT_EQ(ShortTaskId(kJobId, {"worker", 1}), "5f12c2b8");
  EXPECT_NE(ShortTaskId(kJobId, {"worker", 0}), ShortTaskId(kJobId, {"worker", 1}));
  EXPECT_NE(ShortTaskId("mnist-y", {"worker", 1}), ShortTaskId(kJobId, {"worker", 1}));
}

TEST(SelectTasksTest, SelectsByIdAndByUniquePrefix) {
  const std::string id = ShortTaskId(kJobId, {"worker", 1});
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {id}), ElementsAre(cluster::TaskId{"worker", 1}));
  EXPECT_THAT(*SelectTasks(kJobId, Tasks(), {id.substr(0, 4)}),
              ElementsAre(cluster::TaskId{"worker", 1}));
  EXPECT_FALSE(SelectTasks(kJobId, Tasks(), {id + "0"}).ok());
}

TEST(SelectTasksTest, AnAmbiguousPrefixListsTheCandidates) {
  std::vector<job::TaskRecord> tasks;
  for (int i = 0; i < 17; ++i) tasks.push_back({.id = {"worker", i}});  // two share a digit
  std::string prefix;
  std::vector<std::string> both;
  for (size_t i = 0; i < tasks.size() && both.empty(); ++i) {
    for (size_t j = 0; j < i && both.empty(); ++j) {
      prefix = ShortTaskId(kJobId, tasks[i].id).substr(0, 1);
      if (ShortTaskId(kJobId, tasks[j].id).substr(0, 1) != prefix) continue;
      both = {tasks[i].id.ToString(), tasks[j].id.ToString()};
    }
  }
  const auto selected = SelectTasks(kJobId, tasks, {prefix});
  EXPECT_EQ(selected.status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(selected.status().message());
  EXPECT_THAT(message, HasSubstr("'" + prefix + "' is ambiguous"));
  for (const std::string& task : both) EXPECT_THAT(message, HasSubstr(task));
}

TEST(SelectTasksTest, SelectsByMachineAndHostName) {
  std::vector<job::TaskRecord> tasks = Tasks();
  tasks[0].host = "node-a";
  tasks[1].host = "node-a";
  tasks[2].host = "node-b";
  tasks[0].address = "10.0.0.1:2222";
  tasks[1].address = "mnist-worker-0.ml.svc:2222";
  tasks[2].address = "10.0.0.2:2222";
  EXPECT_THAT(*SelectTasks(kJobId, tasks, {"node-a"}),
              ElementsAre(cluster::TaskId{"chief", 0}, cluster::TaskId{"worker", 0}));
  EXPECT_THAT(*SelectTasks(kJobId, tasks, {"mnist-worker-0"}),
              ElementsAre(cluster::TaskId{"worker", 0}));
  EXPECT_THAT(*SelectTasks(kJobId, tasks, {"mnist-worker-0.ml.svc"}),
              ElementsAre(cluster::TaskId{"worker", 0}));
  EXPECT_THAT(*SelectTasks(kJobId, tasks, {"10.0.0.2"}), ElementsAre(cluster::TaskId{"worker", 1}));
  const std::string message(SelectTasks(kJobId, tasks, {"node-bb"}).status().message());
  EXPECT_THAT(message, HasSubstr("did you mean 'node-b'?"));
}

TEST(SelectTasksTest, ARoleTakesPrecedenceOverAPrefix) {
  std::vector<job::TaskRecord> tasks;
  for (int i = 0; i < 40; ++i) tasks.push_back({.id = {"a", i}});
  EXPECT_EQ(SelectTasks(kJobId, tasks, {"a"})->size(), 40);
}

class FindTasksTest : public testing::Test {
 protected:
  job::JobRecord Start(const std::string& name) {
    const std::string text =
        "name: " + name + "\nroles: {worker: {replicas: 2, command: 'true'}}\n";
    const auto plan = PlanRun(*service_, {.submission = service_.Load(text)});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return **StartPlanned(*service_, *plan);
  }
  TestService service_;
};

TEST_F(FindTasksTest, ANameOfAJobSelectsItsTasks) {
  const job::JobRecord job = Start("first");
  const auto all = FindTasks(*service_, {"first"});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->job.id, job.id);
  EXPECT_EQ(all->tasks.size(), 2);
  EXPECT_TRUE(all->is_whole_job);
  const auto one = FindTasks(*service_, {"first", "worker:1"});
  EXPECT_THAT(one->tasks, ElementsAre(cluster::TaskId{"worker", 1}));
  EXPECT_FALSE(one->is_whole_job);
}

TEST_F(FindTasksTest, ATaskAloneIsOneOfTheLatestJob) {
  Start("first");
  const job::JobRecord latest = Start("second");
  const auto one = FindTasks(*service_, {"worker:1"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->job.id, latest.id);
  EXPECT_THAT(one->tasks, ElementsAre(cluster::TaskId{"worker", 1}));
  EXPECT_EQ(FindTasks(*service_, {"worker:1", "worker:0"})->tasks.size(), 2);
}

TEST_F(FindTasksTest, AnIdAloneIsFoundInAnyJob) {
  const job::JobRecord first = Start("first");
  Start("second");
  const std::string id = ShortTaskId(first.id, {"worker", 0});
  const auto one = FindTasks(*service_, {id});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->job.id, first.id);
  EXPECT_THAT(one->tasks, ElementsAre(cluster::TaskId{"worker", 0}));
  EXPECT_EQ(FindTasks(*service_, {id.substr(0, 7)})->job.id, first.id);
}

TEST_F(FindTasksTest, AnUnknownWordIsReportedAsNeither) {
  EXPECT_THAT(std::string(FindTasks(*service_, {"frist"}).status().message()),
              HasSubstr("no job 'frist'"));
  const job::JobRecord job = Start("first");
  const absl::Status unknown = FindTasks(*service_, {"frist"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("did you mean 'first'?"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr(job.id));
}

}  // namespace
}  // namespace muster::jobs
