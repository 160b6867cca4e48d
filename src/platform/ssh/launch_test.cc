#include "platform/ssh/launch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"
#include "platform/platform.h"

namespace muster::ssh {
namespace {

using testing::HasSubstr;

const cluster::TaskId kPs{"ps", 0};
const cluster::TaskId kWorker0{"worker", 0};
const cluster::TaskId kWorker1{"worker", 1};

class AssignmentTest : public testing::Test {
 protected:
  AssignmentTest() {
    assignment_.agent = "agent";
    assignment_.tls = true;
    assignment_.hosts = {
        {.spec = {.name = "a", .address = "a", .user = "me", .port = 22, .slots = 2},
         .address = "10.0.0.1",
         .folder = "/home/me/jobs/x",
         .trainer = "/t",
         .cpus = 4},
        {.spec = {.name = "b", .address = "b", .roles = {"worker"}}, .address = "fe80::1"}};
    assignment_.holder = {{kPs, "a"}, {kWorker0, "a"}, {kWorker1, "b"}};
  }

  job::Submission Submit(const std::string& text) const {
    job::Submission submission;
    submission.id = "x-1";
    submission.spec = job::MustParse(text);
    submission.target = job::SshTarget{.assignment = assignment_};
    return submission;
  }

  job::HostAssignment assignment_;
};

TEST_F(AssignmentTest, IsStoredUnchanged) {
  const auto kept =
      AssignmentOf(Submit("{name: x, roles: {ps: {}, worker: {replicas: 2}}, "
                          "command: t}"));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, assignment_);
  EXPECT_EQ(kept->HostOf(kWorker1).spec.roles, std::vector<std::string>{"worker"});
}

TEST_F(AssignmentTest, ATaskWithoutAHostIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(
      AssignmentOf(Submit("{name: x, roles: {worker: {replicas: 3}}, command: t}")).status()));
  job::Submission damaged = Submit("{name: x, roles: {worker: {}}, command: t}");
  job::MutableTargetOf<job::SshTarget>(damaged).assignment.hosts = {{}, {}};
  EXPECT_TRUE(absl::IsDataLoss(AssignmentOf(damaged).status()));
}

TEST_F(AssignmentTest, AddressesStayUnlessTheTaskHasMoved) {
  const job::JobSpec spec =
      job::MustParse("{name: x, roles: {ps: {port: 2222}, worker: {replicas: 2}}, command: t}");
  cluster::ClusterSpec current;
  current.Set(kWorker0, "10.0.0.1:30000");
  current.Set(kWorker1, "10.0.0.9:30001");  // not the address of its host b
  const cluster::ClusterSpec planned = PlanAddresses(spec, assignment_, current);
  EXPECT_EQ(planned.AddressOf(kPs), "10.0.0.1:2222");
  EXPECT_EQ(planned.AddressOf(kWorker0), "10.0.0.1:30000");
  EXPECT_EQ(planned.AddressOf(kWorker1), platform::kUnassigned);
  EXPECT_FALSE(IsPicked(spec, kPs));
  EXPECT_TRUE(IsPicked(spec, kWorker1));
}

TEST_F(AssignmentTest, TasksOfARoleThatShareAHostDoNotShareItsPort) {
  assignment_.holder[kWorker1] = "a";
  const job::JobSpec spec =
      job::MustParse("{name: x, roles: {ps: {}, worker: {replicas: 2, port: 3333}}, command: t}");
  const cluster::ClusterSpec planned = PlanAddresses(spec, assignment_, {});
  EXPECT_EQ(planned.AddressOf(kWorker0), "10.0.0.1:3333");
  EXPECT_EQ(planned.AddressOf(kWorker1), "10.0.0.1:3334");
}

TEST_F(AssignmentTest, ATaskIsStartedWithTheSettingsOfItsHost) {
  const job::Submission submission =
      Submit("{name: x, roles: {ps: {}, worker: {replicas: 2}}, command: t}");
  cluster::ClusterSpec cluster = PlanAddresses(submission.spec, assignment_, {});
  const auto launch = LaunchOf(submission, assignment_, cluster, kWorker0, 1, 1);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->working_dir, "/home/me/jobs/x/work");
  EXPECT_EQ(launch->env.at("MUSTER_TLS_DIR"), "/home/me/jobs/x/tls");
  EXPECT_EQ(launch->env.at("OMP_NUM_THREADS"), "4");
  EXPECT_EQ(launch->env.at("MUSTER_ATTEMPT"), "1");
  // Paths on a host that is not set up yet are predicted.
  EXPECT_THAT(LaunchOf(submission, assignment_, cluster, kWorker1, 0, 0)->working_dir,
              HasSubstr(".cache/muster/jobs/x-1@b/work"));
}

}  // namespace
}  // namespace muster::ssh
