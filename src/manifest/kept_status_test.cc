#include "manifest/kept_status.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::manifest {
namespace {

constexpr char kAnnotation[] = "muster/status";

Json JobWith(const Json& status) {
  return {{"metadata", {{"name", "j"}, {"uid", "u"}}}, {"status", status}};
}

TEST(KeptStatusTest, SurvivesACrdThatPrunes) {
  const Json status = {{"startTime", "t"},
                       {"restarts", {{"worker:0", {{"count", 1}}}}},
                       {"succeeded", {"worker:1"}}};
  Json job = JobWith({{"startTime", "t"}});
  const Json patch = PatchForPruned(job, status);
  ASSERT_FALSE(patch.is_null());
  job.merge_patch(patch);
  EXPECT_EQ(KeptStatus(job), status);
  EXPECT_TRUE(PatchForPruned(job, status).is_null());
  // No field is left to keep.
  job.merge_patch(PatchForPruned(job, {{"startTime", "t"}}));
  EXPECT_EQ(KeptStatus(job), (Json{{"startTime", "t"}}));
  EXPECT_FALSE(job["metadata"]["annotations"].contains(kAnnotation));
}

TEST(KeptStatusTest, ACrdThatKeepsItNeedsNoAnnotation) {
  const Json status = {{"succeeded", {"worker:1"}}};
  Json job = JobWith(status);
  EXPECT_TRUE(PatchForPruned(job, status).is_null());
  // The state after the CRD was replaced.
  job["metadata"]["annotations"][kAnnotation] = R"({"uid":"u","succeeded":["worker:0"]})";
  EXPECT_EQ(KeptStatus(job), status);
  job.merge_patch(PatchForPruned(job, status));
  EXPECT_FALSE(job["metadata"]["annotations"].contains(kAnnotation));
}

TEST(KeptStatusTest, DropsLossRecordsFirstWhenTooLong) {
  Json status = {{"restarts", {{"worker:0", {{"count", 1}}}, {"job", {{"count", 0}}}}}};
  for (int i = 1; i < 4096; ++i) {
    status["restarts"][absl::StrCat("worker:", i)] = {
        {"count", 0}, {"lost", 1}, {"lastPod", std::string(36, 'a')}};
  }
  Json job = JobWith(Json::object());
  job.merge_patch(PatchForPruned(job, status));
  EXPECT_EQ(KeptStatus(job)["restarts"],
            (Json{{"worker:0", {{"count", 1}}}, {"job", {{"count", 0}}}}));
}

TEST(KeptStatusTest, CountsOfManyTasksFit) {
  Json status = {{"restarts", Json::object()}};
  for (int i = 0; i < 4096; ++i) {
    status["restarts"][absl::StrCat("worker:", i)] = {{"count", 1},
                                                      {"lastPod", std::string(36, 'a')}};
  }
  Json job = JobWith(Json::object());
  const Json patch = PatchForPruned(job, status);
  EXPECT_LT(patch["metadata"]["annotations"][kAnnotation].get<std::string>().size(), 200'000u);
  job.merge_patch(patch);
  EXPECT_EQ(KeptStatus(job)["restarts"].size(), 4096u);
  EXPECT_EQ(KeptStatus(job)["restarts"]["worker:4095"], (Json{{"count", 1}}));
}

TEST(KeptStatusTest, DropsTheSmallestCountsFirst) {
  Json status = {{"restarts", {{"job", {{"count", 1}}}}}};
  for (int i = 0; i < 10'000; ++i) {
    status["restarts"][absl::StrCat("worker:", i)] = {{"count", i < 5'000 ? 1 : 2'000'000'000}};
  }
  Json job = JobWith(Json::object());
  const Json patch = PatchForPruned(job, status);
  const std::string text = patch["metadata"]["annotations"][kAnnotation];
  EXPECT_LT(text.size(), 200'000u);
  EXPECT_GT(text.size(), 190'000u);
  job.merge_patch(patch);
  const Json kept = KeptStatus(job)["restarts"];
  EXPECT_TRUE(kept.contains("job"));
  for (int i = 5'000; i < 10'000; ++i) ASSERT_TRUE(kept.contains(absl::StrCat("worker:", i)));
}

// The annotation is user input and may contain anything.
TEST(KeptStatusTest, AStatusThatCannotBeShortenedIsWrittenInFull) {
  Json status = {{"restarts", {{"job", {{"count", 1}}}, {"worker:0", {{"count", 2'000'000'000}}}}},
                 {"succeeded", {std::string(250'000, 'x')}}};
  const Json patch = PatchForPruned(JobWith(Json::object()), status);
  const std::string text = patch["metadata"]["annotations"][kAnnotation];
  EXPECT_GT(text.size(), 250'000u);
}

TEST(KeptStatusTest, ADeepAnnotationIsIgnored) {
  Json job = JobWith({{"startTime", "t"}});
  job["metadata"]["annotations"][kAnnotation] = absl::StrCat(
      R"({"uid":"u","restarts":)", std::string(100'000, '['), std::string(100'000, ']'), "}");
  EXPECT_EQ(KeptStatus(job), (Json{{"startTime", "t"}}));
}

}  // namespace
}  // namespace muster::manifest
