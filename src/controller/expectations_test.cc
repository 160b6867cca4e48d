#include "controller/expectations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kKey[] = "kubeflow.org/default/j";

ObjectName Pod() { return {Kind::kPod, "j-worker-0"}; }

Json JobAt(const char* version, int generation = 1) {
  return {{"metadata", {{"uid", "u"}, {"resourceVersion", version}, {"generation", generation}}}};
}

absl::Status Refused() {
  return k8s::ErrorOf({.verb = "create", .kind = k8s::kPods}, 403, {{"reason", "Forbidden"}});
}

TEST(ExpectationsTest, TheNewerJobCounts) {
  Expectations expected;
  EXPECT_EQ(expected.Newest(kKey, JobAt("9")), JobAt("9"));
  expected.Written(kKey, JobAt("10"));
  EXPECT_EQ(expected.Newest(kKey, JobAt("9")), JobAt("10"));
  EXPECT_EQ(expected.Newest(kKey, JobAt("11")), JobAt("11"));
  expected.Written(kKey, JobAt("10"));
  Json another = JobAt("9");
  another["metadata"]["uid"] = "v";
  EXPECT_EQ(expected.Newest(kKey, another), another);
}

TEST(ExpectationsTest, ACreationIsAskedForOnceUntilItShows) {
  Expectations expected;
  EXPECT_TRUE(expected.IsNew(kKey));
  EXPECT_TRUE(expected.BeginCreation(kKey, Pod()));
  EXPECT_FALSE(expected.IsNew(kKey));
  expected.EndCreation(kKey, Pod(), absl::OkStatus(), /*existed=*/false);
  EXPECT_FALSE(expected.BeginCreation(kKey, Pod()));
  EXPECT_THAT(expected.Creations(kKey), ElementsAre(Pod()));
  expected.Appeared(kKey, Pod());
  EXPECT_THAT(expected.Creations(kKey), IsEmpty());
  // One that failed is not under way, nor one that was there.
  EXPECT_TRUE(expected.BeginCreation(kKey, Pod()));
  expected.EndCreation(kKey, Pod(), absl::UnavailableError("cut"), /*existed=*/false);
  EXPECT_TRUE(expected.BeginCreation(kKey, Pod()));
  expected.EndCreation(kKey, Pod(), absl::OkStatus(), /*existed=*/true);
  EXPECT_THAT(expected.Creations(kKey), IsEmpty());
  EXPECT_THAT(expected.TakeNewRefusals(kKey), IsEmpty());
  expected.Forget(kKey);
  EXPECT_TRUE(expected.IsNew(kKey));
}

TEST(ExpectationsTest, ADeletionIsAskedForOnceUnlessAtOnce) {
  Expectations expected;
  Delete removal{.kind = Kind::kPod, .name = "j-worker-0", .uid = "p"};
  EXPECT_TRUE(expected.BeginDeletion(kKey, removal));
  EXPECT_FALSE(expected.BeginDeletion(kKey, removal));
  removal.at_once = true;
  EXPECT_TRUE(expected.BeginDeletion(kKey, removal));
  removal.at_once = false;
  expected.EndDeletion(kKey, "p");
  EXPECT_TRUE(expected.BeginDeletion(kKey, removal));
}

TEST(ExpectationsTest, RefusalsAreOfOneGenerationAndNewOnce) {
  Expectations expected;
  EXPECT_THAT(expected.RefusedFor(kKey, JobAt("1")), IsEmpty());
  expected.BeginCreation(kKey, Pod());
  expected.EndCreation(kKey, Pod(), Refused(), /*existed=*/false);
  EXPECT_THAT(expected.TakeNewRefusals(kKey), SizeIs(1));
  EXPECT_THAT(expected.TakeNewRefusals(kKey), IsEmpty());
  EXPECT_THAT(expected.RefusedFor(kKey, JobAt("2")), SizeIs(1));
  EXPECT_THAT(expected.RefusedFor(kKey, JobAt("3", /*generation=*/2)), IsEmpty());
  expected.EndCreation(kKey, Pod(), Refused(), /*existed=*/false);
  expected.EndCreation(kKey, Pod(), absl::OkStatus(), /*existed=*/false);
  EXPECT_THAT(expected.RefusedFor(kKey, JobAt("4", /*generation=*/2)), IsEmpty());
}

}  // namespace
}  // namespace muster::controller
