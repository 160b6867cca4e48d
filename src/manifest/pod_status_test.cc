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

TEST(StatusOfTest, AFailedInitContainerIsTheReasonOfTheWait) {
  Json pod = {
      {"status",
       {{"phase", "Failed"},
        {"containerStatuses",
         {{{"name", "tensorflow"}, {"state", {{"waiting", {{"reason", "PodInitializing"}}}}}}}},
        {"initContainerStatuses",
         {{{"name", "first"}, {"state", {{"terminated", {{"exitCode", 0}}}}}},
          {{"name", "files"},
           {"state", {{"terminated", {{"exitCode", 127}, {"message", "tar: not found\n"}}}}}}}}}}};
  const std::string why = "init container 'files' failed with exit code 127: tar: not found";
  EXPECT_EQ(StatusOf(pod).reason, why);
  EXPECT_EQ(WhyWaiting(pod), why);
  EXPECT_EQ(WhyLost(pod), std::nullopt);
  pod["status"]["initContainerStatuses"][1]["state"] = {{"running", Json::object()}};
  EXPECT_EQ(StatusOf(pod).reason, "PodInitializing");
  EXPECT_EQ(WhyWaiting(pod), "");
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
