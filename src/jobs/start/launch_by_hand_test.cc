#include "jobs/start/launch_by_hand.h"

#include "gmock/gmock.h"
#include "jobs/testing.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class LaunchByHandTest : public testing::Test {
 protected:
  LaunchByHandTest() {
    for (int i = 0; i < 2; ++i) unassigned_.Set({"worker", i}, platform::kUnassigned);
  }

  cluster::ClusterSpec unassigned_;
  TestService service_;
};

TEST_F(LaunchByHandTest, TasksOfThisMachineGetConsecutivePorts) {
  service_.local().addresses = unassigned_;
  const auto job = ClusterBeforeStart(*service_, service_.Load(kJob));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->submission.id, "x");
  EXPECT_EQ(job->cluster.AddressOf({"worker", 0}), "127.0.0.1:2222");
  EXPECT_EQ(job->cluster.AddressOf({"worker", 1}), "127.0.0.1:2223");
}

TEST_F(LaunchByHandTest, AddressesThatAPlatformPicksAtTheStartAreUnknown) {
  service_.cluster().addresses = unassigned_;
  const absl::Status unknown =
      ClusterBeforeStart(*service_, service_.Load(kJob, job::KubernetesTarget())).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("worker:0 gets its address when the job starts on Kubernetes"));
}

TEST_F(LaunchByHandTest, RemovesTheVariablesOfAJobFolder) {
  service_.local().launch.env = {
      {"MUSTER_JOB_ID", "x"}, {"MUSTER_PROGRESS_FILE", "/p"}, {"TF_CONFIG", "{}"}};
  const JobCluster job{.submission = service_.Load(kJob)};
  const auto launch = LaunchByHand(*service_, job, {"worker", 1}, "/certs");
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_THAT(launch->env, ElementsAre(Pair("MUSTER_TLS_DIR", "/certs"), Pair("TF_CONFIG", "{}")));
  EXPECT_EQ(LaunchByHand(*service_, job, {"worker", 2}, "").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::jobs
