#include "platform/local/launch.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "platform/local/addresses.h"
#include "supervise/testing.h"

namespace muster::local {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr char kJob[] = R"(
name: x
command: train
env: {LEVEL: info}
roles:
  chief: {}
  worker: {replicas: 2, command: "work --fast"}
  ps: {}
policies: {max_restarts: 3}
)";

const cluster::TaskId kChief{"chief", 0};
const cluster::TaskId kPs{"ps", 0};
const cluster::TaskId kWorker0{"worker", 0};
const cluster::TaskId kWorker1{"worker", 1};

class UpdateTest : public supervise::LaunchTest {
 protected:
  // Returns the plan for replacing `from` by `to` in the job file.
  supervise::UpdatePlan PlanOf(absl::string_view from, absl::string_view to,
                               const std::string& job = kJob) const {
    const job::Submission current = Submit(job);
    const job::Submission next = Submit(absl::StrReplaceAll(job, {{from, to}}));
    EXPECT_TRUE(from.empty() || current.source != next.source);
    supervise::PortReservations ports;
    const auto cluster = AssignAddresses(current.spec, {}, ports);
    const auto plan = PlanUpdate(dir(), current, *cluster, next);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *plan;
  }
};

TEST_F(UpdateTest, NothingChanged) {
  EXPECT_TRUE(PlanOf("name: x", "name:   x # a comment").empty());
}

TEST_F(UpdateTest, ACommandRestartsTheTasksThatRunIt) {
  const supervise::UpdatePlan plan = PlanOf("--fast", "--slow");
  EXPECT_THAT(plan.restarted, ElementsAre(kWorker0, kWorker1));
  EXPECT_THAT(plan.kept, ElementsAre(kChief, kPs));
  EXPECT_THAT(plan.added, IsEmpty());
  EXPECT_THAT(plan.removed, IsEmpty());
  EXPECT_FALSE(plan.policies_changed);
}

TEST_F(UpdateTest, TheJobsEnvironmentRestartsEveryTask) {
  EXPECT_THAT(PlanOf("LEVEL: info", "LEVEL: debug").restarted, SizeIs(4));
}

TEST_F(UpdateTest, ARolesEnvironmentAndDirectoryRestartItsTasks) {
  EXPECT_THAT(PlanOf("ps: {}", "ps: {env: {A: b}}").restarted, ElementsAre(kPs));
  EXPECT_THAT(PlanOf("ps: {}", "ps: {working_dir: /tmp}").restarted, ElementsAre(kPs));
}

TEST_F(UpdateTest, ScalingWorkersRestartsEveryTask) {
  const supervise::UpdatePlan more = PlanOf("replicas: 2", "replicas: 3");
  EXPECT_THAT(more.added, ElementsAre(cluster::TaskId{"worker", 2}));
  EXPECT_THAT(more.restarted, UnorderedElementsAre(kChief, kPs, kWorker0, kWorker1));
  const supervise::UpdatePlan fewer = PlanOf("replicas: 2", "replicas: 1");
  EXPECT_THAT(fewer.removed, ElementsAre(kWorker1));
  EXPECT_THAT(fewer.restarted, UnorderedElementsAre(kChief, kPs, kWorker0));
}

// An evaluator is not part of the others' cluster, so it is added and removed without restarts.
TEST_F(UpdateTest, AnEvaluatorIsAddedAndRemovedWithoutRestarts) {
  const cluster::TaskId evaluator{"evaluator", 0};
  const supervise::UpdatePlan added = PlanOf("ps: {}", "ps: {}\n  evaluator: {}");
  EXPECT_THAT(added.added, ElementsAre(evaluator));
  EXPECT_THAT(added.restarted, IsEmpty());
  const supervise::UpdatePlan removed = PlanOf(
      "  evaluator: {}\n", "", absl::StrReplaceAll(kJob, {{"ps: {}", "ps: {}\n  evaluator: {}"}}));
  EXPECT_THAT(removed.removed, ElementsAre(evaluator));
  EXPECT_THAT(removed.restarted, IsEmpty());
}

// The chief of the built-in trainer evaluates if there is no evaluator.
TEST_F(UpdateTest, AnEvaluatorRestartsTheChiefOfTheBuiltInTrainer) {
  const std::string job =
      "name: x\n"
      "roles: {chief: 1, worker: 2, ps: 1}\n"
      "train: {model: cnn, steps: 10, data: {format: synthetic}}\n";
  const supervise::UpdatePlan plan = PlanOf("ps: 1}", "ps: 1, evaluator: 1}", job);
  EXPECT_THAT(plan.restarted, ElementsAre(kChief));
  EXPECT_THAT(plan.kept, UnorderedElementsAre(kWorker0, kWorker1, kPs));
}

TEST_F(UpdateTest, PoliciesAloneRestartNothing) {
  for (const char* policies :
       {"max_restarts: 7", "max_restarts: 3, deadline: 1h", "max_restarts: 3, stop_grace: 3s",
        "max_restarts: 3, stall: 5m", "max_restarts: 3, restart: always"}) {
    const supervise::UpdatePlan plan = PlanOf("max_restarts: 3", policies);
    EXPECT_THAT(plan.restarted, IsEmpty()) << policies;
    EXPECT_TRUE(plan.policies_changed) << policies;
    EXPECT_FALSE(plan.empty());
  }
  const supervise::UpdatePlan role = PlanOf("ps: {}", "ps: {restart: never, ready: listening}");
  EXPECT_THAT(role.restarted, IsEmpty());
  EXPECT_TRUE(role.policies_changed);
}

TEST_F(UpdateTest, AFixedPortRestartsEveryTaskThatReceivesIt) {
  const supervise::UpdatePlan plan = PlanOf("ps: {}", "ps: {port: 19999}");
  EXPECT_THAT(plan.restarted, UnorderedElementsAre(kChief, kPs, kWorker0, kWorker1));
}

TEST_F(UpdateTest, FixedAddressesThatStayRestartNothing) {
  const std::string job =
      absl::StrReplaceAll(kJob, {{"ps: {}", "ps: {addresses: ['localhost:19998']}"}});
  const job::Submission current = Submit(job);
  cluster::ClusterSpec cluster = PlanAddresses(current.spec, {});
  cluster.Set(kChief, "127.0.0.1:20001");
  cluster.Set(kWorker0, "127.0.0.1:20002");
  cluster.Set(kWorker1, "127.0.0.1:20003");
  EXPECT_TRUE(PlanUpdate(dir(), current, cluster, current)->empty());
}

TEST_F(UpdateTest, RolesAreAddedAndRemoved) {
  const supervise::UpdatePlan plan = PlanOf("ps: {}", "actor: {}");
  EXPECT_THAT(plan.added, ElementsAre(cluster::TaskId{"actor", 0}));
  EXPECT_THAT(plan.removed, ElementsAre(kPs));
}

TEST_F(UpdateTest, EditedFilesRestartTheTasksThatUseThem) {
  supervise::PortReservations ports;
  job::Submission current = Submit(
      "name: x\n"
      "roles: {chief: 1, worker: {replicas: 2, command: work}, ps: 1}\n"
      "train: {model: cnn, steps: 10, data: {format: synthetic}}\n");
  const auto cluster = AssignAddresses(current.spec, {}, ports);
  job::Submission next = current;
  current.version = {.program = "a", .train = "c"};
  next.version = {.program = "b", .train = "c"};
  EXPECT_THAT(PlanUpdate(dir(), current, *cluster, next)->restarted,
              ElementsAre(kWorker0, kWorker1));
  next.version = {.program = "a", .train = "d"};
  EXPECT_THAT(PlanUpdate(dir(), current, *cluster, next)->restarted, ElementsAre(kChief, kPs));
  next.version = {};  // unknown
  EXPECT_TRUE(PlanUpdate(dir(), current, *cluster, next)->empty());
}

TEST_F(UpdateTest, AnotherGenerationRestartsEveryTask) {
  supervise::PortReservations ports;
  const job::Submission current = Submit(kJob);
  const auto cluster = AssignAddresses(current.spec, {}, ports);
  job::Submission next = current;
  next.generation = 1;
  EXPECT_THAT(PlanUpdate(dir(), current, *cluster, next)->restarted, SizeIs(4));
}

// The trainer reads its section from a file whose name does not change.
TEST_F(UpdateTest, TheTrainSectionRestartsTheTasksOfTheTrainer) {
  const std::string job = R"(
name: x
model_dir: /tmp/x
roles: {chief: {}, worker: {}}
train:
  model: cnn
  data: {format: mnist, path: data}
  optimizer: {type: adam, learning_rate: 0.001}
  batch_size: 64
  steps: 2000
)";
  EXPECT_THAT(PlanOf("steps: 2000", "steps: 3000", job).restarted, SizeIs(2));
}

TEST_F(UpdateTest, ALaunchHasTheTaskEnvironment) {
  const job::Submission submission = Submit(kJob);
  cluster::ClusterSpec cluster;
  int port = 20000;
  for (const cluster::TaskId& task : submission.spec.Tasks()) {
    cluster.Set(task, absl::StrCat("127.0.0.1:", ++port));
  }
  const auto launch = LaunchOf(dir(), submission, cluster, kWorker1, 2, 1);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->working_dir, home_);
  EXPECT_EQ(launch->env.at("MUSTER_JOB_ID"), submission.id);
  EXPECT_EQ(launch->env.at("MUSTER_TASK"), "worker:1");
  EXPECT_EQ(launch->env.at("MUSTER_ATTEMPT"), "2");
  EXPECT_EQ(launch->env.at("TORCHELASTIC_RESTART_COUNT"), "1");
  EXPECT_EQ(launch->env.at("TORCHELASTIC_ERROR_FILE"), dir().run_dir(kWorker1) + "/error.json");
}

}  // namespace
}  // namespace muster::local
