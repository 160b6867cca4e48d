#include "k8s/resource.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/request.h"

namespace muster::k8s {
namespace {

using testing::EndsWith;

TEST(ResourceTest, FindsKindsByApiVersionAndKind) {
  EXPECT_EQ(FindKind("v1", "Pod")->plural, "pods");
  EXPECT_EQ(FindKind("apps/v1", "Deployment")->plural, "deployments");
  EXPECT_FALSE(FindKind("rbac.authorization.k8s.io/v1", "ClusterRole")->namespaced);
  EXPECT_EQ(FindKind("apps/v1", "Pod"), nullptr);
}

TEST(ResourceTest, MissingOrMistypedMembersReadAsEmpty) {
  const Json object = {{"metadata", {{"name", "a"}, {"labels", {{"x/y", "z"}}}, {"uid", 5}}}};
  EXPECT_EQ(NameOf(object), "a");
  EXPECT_EQ(UidOf(object), "");
  EXPECT_EQ(LabelOf(object, "x/y"), "z");
  EXPECT_EQ(LabelOf(object, "x"), "");
  EXPECT_EQ(NameOf("text"), "");
  EXPECT_EQ(Find(object, "/metadata/name/deeper"), nullptr);
  EXPECT_FALSE(IsBeingDeleted(object));
}

TEST(ResourceTest, Times) {
  const absl::Time time = absl::FromUnixMicros(1'700'000'000'000'007);
  EXPECT_EQ(Timestamp(time), "2023-11-14T22:13:20Z");
  EXPECT_EQ(MicroTimestamp(time), "2023-11-14T22:13:20.000007Z");
}

TEST(ResourceTest, AnEventNamesItsObjectAndFitsTheLimit) {
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", "a"}, {"namespace", "b"}, {"uid", "u"}}}};
  std::string message(1020, 'x');
  for (int i = 0; i < 10; ++i) message += "\u00e4";
  const Json event =
      MakeEvent(ReferenceTo(pod), {.warning = true, .reason = "Failed", .message = message});
  EXPECT_EQ(TextAt(event, "/involvedObject/uid"), "u");
  EXPECT_EQ(TextAt(event, "/metadata/namespace"), "b");
  EXPECT_EQ(TextAt(event, "/type"), "Warning");
  EXPECT_THAT(TextAt(event, "/message"), EndsWith("..."));
  EXPECT_LE(TextAt(event, "/message").size(), 1024);
  EXPECT_NO_THROW((void)event.dump());  // no partial UTF-8 character
}

TEST(RequestTest, BuildsPaths) {
  const auto path = [](const ApiRequest& request) { return request.Path().value_or("none"); };
  EXPECT_EQ(path({.kind = kPods, .key = {"b", "a"}}), "/api/v1/namespaces/b/pods/a");
  EXPECT_EQ(path({.verb = "list", .kind = kPods}), "/api/v1/pods");
  EXPECT_EQ(path({.kind = kNamespaces, .key = {"", "a"}}), "/api/v1/namespaces/a");
  EXPECT_EQ(path({.verb = "patch",
                  .kind = kLeases,
                  .key = {"b", "a/../c"},
                  .query = {{"x", "a=b&c"}},
                  .call = {.subresource = "status", .dry_run = true}}),
            "/apis/coordination.k8s.io/v1/namespaces/b/leases/a%2F..%2Fc/status?x=a%3Db%26c&"
            "dryRun=All");
  // A deletion without a name would delete all objects.
  for (const char* verb : {"get", "update", "patch", "delete"}) {
    EXPECT_EQ(path({.verb = verb, .kind = kPods, .key = {"b", ""}}), "none") << verb;
    EXPECT_EQ(path({.verb = verb, .kind = kPods, .key = {"b", ".."}}), "none") << verb;
    EXPECT_EQ(path({.verb = verb, .kind = kPods, .key = {"..", "a"}}), "none") << verb;
  }
}

TEST(ResourceTest, ParsesTimes) {
  const Json object = {{"at", "2027-01-15T08:00:00Z"}, {"none", nullptr}, {"text", "yesterday"}};
  EXPECT_EQ(Timestamp(absl::FromUnixSeconds(1'800'000'000)), "2027-01-15T08:00:00Z");
  EXPECT_EQ(TimeAt(object, "/at"), absl::FromUnixSeconds(1'800'000'000));
  EXPECT_EQ(TimeAt(object, "/none"), std::nullopt);
  EXPECT_EQ(TimeAt(object, "/text"), std::nullopt);
  EXPECT_EQ(TimeAt(object, "/nowhere"), std::nullopt);
}

TEST(ResourceTest, ReadsNumbersOfAnySize) {
  const Json object = {{"a", 137},          {"b", -1},  {"c", int64_t{1} << 40},
                       {"d", ~uint64_t{0}}, {"e", 1.5}, {"f", "1"}};
  EXPECT_EQ(NumberAt(object, "/a"), 137);
  EXPECT_EQ(NumberAt(object, "/b"), -1);
  for (const char* path : {"/c", "/d", "/e", "/f", "/g"}) EXPECT_FALSE(NumberAt(object, path));
  EXPECT_EQ(CountAt(object, "/a"), 137);
  EXPECT_EQ(CountAt(object, "/b"), 0);
  EXPECT_EQ(CountAt(object, "/d"), kMaxCount);
}

}  // namespace
}  // namespace muster::k8s
