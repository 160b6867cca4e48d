#include "job/success_policy.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using Tasks = std::set<cluster::TaskId>;

JobSpec Job(const std::string& roles, SuccessPolicy success, JobFormat format) {
  JobSpec spec = MustParse("name: j\ncommand: train\nroles: " + roles + "\n");
  spec.policies.success = success;
  spec.format = format;
  return spec;
}

bool Succeeds(const JobSpec& spec, const Tasks& succeeded) {
  return HasSucceeded(spec, [&](const cluster::TaskId& task) { return succeeded.contains(task); });
}

TEST(SuccessPolicyTest, TheChiefDecides) {
  const JobSpec spec =
      Job("{chief: {}, worker: 2, ps: 1}", SuccessPolicy::kChief, JobFormat::kNative);
  EXPECT_EQ(DecidingTask(spec), (cluster::TaskId{"chief", 0}));
  EXPECT_FALSE(Succeeds(spec, {{"worker", 0}, {"worker", 1}, {"ps", 0}}));
  EXPECT_TRUE(Succeeds(spec, {{"chief", 0}}));
}

TEST(SuccessPolicyTest, AllTasksThatTrainHaveToSucceed) {
  const JobSpec spec = Job("{chief: {}, worker: 2, ps: 1, evaluator: {}}",
                           SuccessPolicy::kAllWorkers, JobFormat::kNative);
  EXPECT_EQ(DecidingTask(spec), std::nullopt);
  EXPECT_FALSE(Succeeds(spec, {{"chief", 0}}));
  EXPECT_FALSE(Succeeds(spec, {{"worker", 0}, {"worker", 1}}));
  EXPECT_TRUE(Succeeds(spec, {{"chief", 0}, {"worker", 0}, {"worker", 1}}));
}

TEST(SuccessPolicyTest, TheChiefOfATfJobDecidesAlsoWithAllWorkers) {
  const JobSpec spec =
      Job("{master: {}, worker: 2}", SuccessPolicy::kAllWorkers, JobFormat::kTfJobV1);
  EXPECT_TRUE(Succeeds(spec, {{"master", 0}}));
  const JobSpec without = Job("{worker: 2}", SuccessPolicy::kAllWorkers, JobFormat::kTfJobV1);
  EXPECT_FALSE(Succeeds(without, {{"worker", 0}}));
  EXPECT_TRUE(Succeeds(without, {{"worker", 0}, {"worker", 1}}));
}

TEST(SuccessPolicyTest, ServersAloneDecideForThemselves) {
  JobSpec spec = Job("{worker: 1, ps: 1}", SuccessPolicy::kAllWorkers, JobFormat::kTfJobV1);
  std::erase_if(spec.roles, [](const RoleSpec& role) { return role.name == "worker"; });
  EXPECT_FALSE(Succeeds(spec, {}));
  EXPECT_TRUE(Succeeds(spec, {{"ps", 0}}));
}

}  // namespace
}  // namespace muster::job
