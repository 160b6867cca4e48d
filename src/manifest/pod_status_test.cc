#include "manifest/pod_status.h"

#include "gtest/gtest.h"

namespace muster::manifest {
namespace {

Json Failed(const std::string& reason, std::optional<int> code) {
  Json pod = {{"metadata", {{"name", "p"}}}, {"status", {{"phase", "Failed"}}}};
  if (!reason.empty()) pod["status"]["reason"] = reason;
  if (code) {
    pod["status"]["containerStatuses"] =
        Json::array({{{"name", "tensorflow"}, {"state", {{"terminated", {{"exitCode", *code}}}}}}});
  }
  return pod;
}

TEST(WhyLostTest, NamesTheReason) {
  Json pod = Failed("Evicted", 137);
  pod["status"]["message"] = "The node was low on resource: memory.";
  EXPECT_EQ(WhyLost(pod), "Evicted: The node was low on resource: memory.");
  EXPECT_EQ(WhyLost(Failed("OutOfnvidia.com/gpu", std::nullopt)), "OutOfnvidia.com/gpu");
  EXPECT_EQ(WhyLost(Failed("", std::nullopt)), "its node is gone");
  pod = Failed("", 1);
  EXPECT_FALSE(WhyLost(pod));
  pod["status"]["conditions"] = Json::array({{{"type", "DisruptionTarget"},
                                              {"status", "True"},
                                              {"reason", "DeletionByTaintManager"},
                                              {"message", "Taint manager: deleting"}}});
  EXPECT_EQ(WhyLost(pod), "DeletionByTaintManager: Taint manager: deleting");
  pod["status"]["conditions"][0]["status"] = "False";
  EXPECT_FALSE(WhyLost(pod));
  EXPECT_FALSE(WhyLost(Failed("DeadlineExceeded", std::nullopt)));
  EXPECT_FALSE(WhyLost(Failed("ProviderFailed", 1)));  // a reason used by a virtual kubelet
  pod["status"]["phase"] = "Running";
  EXPECT_FALSE(WhyLost(pod));
}

TEST(OutcomeCountsTest, NotWhileThePodIsBeingDeleted) {
  Json pod = Failed("", 143);
  EXPECT_TRUE(OutcomeCounts(pod));
  pod["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:30Z";
  pod["metadata"]["deletionGracePeriodSeconds"] = 30;
  EXPECT_FALSE(OutcomeCounts(pod));
  Json& ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"];
  ended = "2026-05-01T12:00:02Z";
  EXPECT_FALSE(OutcomeCounts(pod));
  ended = "2026-05-01T11:59:55Z";  // within the clock skew
  EXPECT_FALSE(OutcomeCounts(pod));
  ended = "2026-05-01T11:59:50Z";
  EXPECT_TRUE(OutcomeCounts(pod));
  Json& containers = pod["status"]["containerStatuses"];
  containers.push_back(
      {{"name", "sidecar"},
       {"state", {{"terminated", {{"exitCode", 143}, {"finishedAt", "2026-05-01T12:00:02Z"}}}}}});
  EXPECT_FALSE(OutcomeCounts(pod));
  containers[1]["state"]["terminated"]["finishedAt"] = "2026-05-01T11:59:50Z";
  EXPECT_TRUE(OutcomeCounts(pod));
}

}  // namespace
}  // namespace muster::manifest
