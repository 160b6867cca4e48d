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

absl::Status Rejected() {
  return k8s::ErrorOf({.verb = "create", .kind = k8s::kPods}, 403, {{"reason", "Forbidden"}});
}

TEST(ExpectationsTest, NewestReturnsTheNewerJob) {
  Expectations expectations;
  EXPECT_EQ(expectations.Newest(kKey, JobAt("9")), JobAt("9"));
  expectations.RecordWrite(kKey, JobAt("10"));
  EXPECT_EQ(expectations.Newest(kKey, JobAt("9")), JobAt("10"));
  EXPECT_EQ(expectations.Newest(kKey, JobAt("11")), JobAt("11"));
  expectations.RecordWrite(kKey, JobAt("10"));
  Json another = JobAt("9");
  another["metadata"]["uid"] = "v";
  EXPECT_EQ(expectations.Newest(kKey, another), another);
}

TEST(ExpectationsTest, ACreationIsExpectedUntilObserved) {
  Expectations expectations;
  EXPECT_TRUE(expectations.IsNew(kKey));
  EXPECT_TRUE(expectations.ExpectCreation(kKey, Pod()));
  EXPECT_FALSE(expectations.IsNew(kKey));
  expectations.EndCreation(kKey, Pod(), absl::OkStatus(), /*existed=*/false);
  EXPECT_FALSE(expectations.ExpectCreation(kKey, Pod()));
  EXPECT_THAT(expectations.Creations(kKey), ElementsAre(Pod()));
  expectations.CreationObserved(kKey, Pod());
  EXPECT_THAT(expectations.Creations(kKey), IsEmpty());
  // A creation that failed is not pending, nor one of an object that existed.
  EXPECT_TRUE(expectations.ExpectCreation(kKey, Pod()));
  expectations.EndCreation(kKey, Pod(), absl::UnavailableError("cut"), /*existed=*/false);
  EXPECT_TRUE(expectations.ExpectCreation(kKey, Pod()));
  expectations.EndCreation(kKey, Pod(), absl::OkStatus(), /*existed=*/true);
  EXPECT_THAT(expectations.Creations(kKey), IsEmpty());
  EXPECT_THAT(expectations.TakeNewCreateFailures(kKey), IsEmpty());
  expectations.Forget(kKey);
  EXPECT_TRUE(expectations.IsNew(kKey));
}

TEST(ExpectationsTest, ADeletionIsExpectedOnceUnlessImmediate) {
  Expectations expectations;
  Delete removal{.kind = Kind::kPod, .name = "j-worker-0", .uid = "p"};
  EXPECT_TRUE(expectations.ExpectDeletion(kKey, removal));
  EXPECT_FALSE(expectations.ExpectDeletion(kKey, removal));
  removal.immediately = true;
  EXPECT_TRUE(expectations.ExpectDeletion(kKey, removal));
  removal.immediately = false;
  expectations.EndDeletion(kKey, "p");
  EXPECT_TRUE(expectations.ExpectDeletion(kKey, removal));
}

TEST(ExpectationsTest, CreateFailuresBelongToOneGenerationAndAreNewOnce) {
  Expectations expectations;
  EXPECT_THAT(expectations.CreateFailuresFor(kKey, JobAt("1")), IsEmpty());
  expectations.ExpectCreation(kKey, Pod());
  expectations.EndCreation(kKey, Pod(), Rejected(), /*existed=*/false);
  EXPECT_THAT(expectations.TakeNewCreateFailures(kKey), SizeIs(1));
  EXPECT_THAT(expectations.TakeNewCreateFailures(kKey), IsEmpty());
  EXPECT_THAT(expectations.CreateFailuresFor(kKey, JobAt("2")), SizeIs(1));
  EXPECT_THAT(expectations.CreateFailuresFor(kKey, JobAt("3", /*generation=*/2)), IsEmpty());
  expectations.EndCreation(kKey, Pod(), Rejected(), /*existed=*/false);
  expectations.EndCreation(kKey, Pod(), absl::OkStatus(), /*existed=*/false);
  EXPECT_THAT(expectations.CreateFailuresFor(kKey, JobAt("4", /*generation=*/2)), IsEmpty());
}

}  // namespace
}  // namespace muster::controller
