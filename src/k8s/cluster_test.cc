// The client against a real API server.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"
#include "k8s/informer.h"
#include "k8s/leader_elector.h"

namespace muster::k8s {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

// Returns the kubeconfig of the cluster that tests share, or "" if this machine cannot run one.
std::string SharedKubeconfig() {
  const char* named = std::getenv("MUSTER_CLUSTER_UP");
  const std::string script = named != nullptr ? named : absl::StrCat(MUSTER_TESTS, "/cluster/up");
  if (!std::filesystem::exists(script)) return "";
  std::FILE* up = ::popen(absl::StrCat("exec ", script, " --shared").c_str(), "r");
  char line[4096] = "";
  if (std::fgets(line, sizeof(line), up) == nullptr) line[0] = '\0';
  if (::pclose(up) != 0) return "";
  const std::pair<std::string, std::string> halves = absl::StrSplit(line, absl::MaxSplits('=', 1));
  return std::string(absl::StripAsciiWhitespace(halves.second));
}

// A namespace of its own in it.
class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    kubeconfig_ = SharedKubeconfig();
    if (kubeconfig_.empty()) GTEST_SKIP() << "there is no cluster for tests here";
    const auto config = Load("admin");
    ASSERT_TRUE(config.ok()) << config.status();
    client_ = *Client::Create(*config, {.on_warning = [this](const std::string& text) {
      absl::MutexLock lock(&mutex_);
      warnings_.push_back(text);
    }});
    const auto created =
        client_->Create(kNamespaces, {{"apiVersion", "v1"},
                                      {"kind", "Namespace"},
                                      {"metadata", {{"generateName", "k8s-test-"}}}});
    ASSERT_TRUE(created.ok()) << created.status();
    space_ = NameOf(*created);
  }
  void TearDown() override {
    if (space_.empty()) return;
    EXPECT_TRUE(client_->Delete(kNamespaces, {"", space_}).ok());
  }

  absl::StatusOr<ClusterConfig> Load(const std::string& context) const {
    return LoadKubeconfig(
        [this](const std::string& name) { return name == "KUBECONFIG" ? kubeconfig_ : ""; },
        context);
  }
  Json ConfigMap(const std::string& name, const Json& data = {{"x", "1"}}) const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"namespace", space_}, {"labels", {{"app", "test"}}}}},
            {"data", data}};
  }
  ObjectKey Key(const std::string& name) const { return {space_, name}; }

  std::string kubeconfig_;
  std::string space_;
  std::unique_ptr<Client> client_;
  absl::Mutex mutex_;
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ClusterTest, CreatesReadsUpdatesAndDeletes) {
  const auto created = client_->Create(kConfigMaps, ConfigMap("a"));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(IsExistingObject(client_->Create(kConfigMaps, ConfigMap("a")).status()));
  Json changed = *created;
  changed["data"]["x"] = "2";
  ASSERT_TRUE(client_->Update(kConfigMaps, changed).ok());
  EXPECT_TRUE(IsConflict(client_->Update(kConfigMaps, *created).status()));
  const auto patched =
      client_->Patch(kConfigMaps, Key("a"), {{"data", {{"x", nullptr}, {"y", "3"}}}});
  ASSERT_TRUE(patched.ok()) << patched.status();
  EXPECT_EQ((*patched)["data"], Json({{"y", "3"}}));
  const absl::Status owned =
      client_->Apply(kConfigMaps, ConfigMap("a", {{"y", "4"}}), false).status();
  EXPECT_TRUE(IsConflict(owned)) << owned;
  const auto applied = client_->Apply(kConfigMaps, ConfigMap("a", {{"y", "4"}}), true);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_TRUE(client_->Apply(kConfigMaps, ConfigMap("b"), false, {.dry_run = true}).ok());
  EXPECT_TRUE(IsNoSuchObject(client_->Get(kConfigMaps, Key("b")).status()));
  EXPECT_TRUE(IsConflict(client_->Delete(kConfigMaps, Key("a"), {.uid = "another"})));
  EXPECT_TRUE(client_->Delete(kConfigMaps, Key("a"), {.uid = UidOf(*applied)}).ok());
  EXPECT_TRUE(IsNoSuchObject(client_->Delete(kConfigMaps, Key("a"))));
}

TEST_F(ClusterTest, ReadsListsInPages) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(client_->Create(kConfigMaps, ConfigMap(absl::StrCat("c", i))).ok());
  }
  const auto list = client_->List(
      kConfigMaps, {.selection = {.ns = space_, .labels = "app=test"}, .page_size = 2});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->items, SizeIs(7));
  EXPECT_EQ(TextAt(list->items[0], "/kind"), "ConfigMap");
}

TEST_F(ClusterTest, APodsStatusLogAndEvent) {
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", "p"}, {"namespace", space_}}},
              {"spec", {{"containers", {{{"name", "c"}, {"image", "x"}}}}}}};
  pod["spec"]["automountServiceAccountToken"] = false;
  absl::StatusOr<Json> created;
  // The namespace's account comes a moment after the namespace.
  for (int i = 0; i < 200 && !(created = client_->Create(kPods, pod)).ok(); ++i) {
    ASSERT_TRUE(IsForbidden(created.status())) << created.status();
    absl::SleepFor(absl::Milliseconds(100));
  }
  ASSERT_TRUE(created.ok()) << created.status();
  const auto running = client_->Patch(kPods, Key("p"), {{"status", {{"phase", "Running"}}}},
                                      {.subresource = "status"});
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_EQ(TextAt(*running, "/status/phase"), "Running");
  const auto event = client_->Create(
      kEvents,
      MakeEvent(
          ReferenceTo(*created),
          {.reason = "Tested", .message = "m", .component = "k8s_test", .time = absl::Now()}));
  ASSERT_TRUE(event.ok()) << event.status();
  const absl::Status log = client_->ReadLog(Key("p"), {.container = "no"},
                                            [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsInvalidArgument(log)) << log;
  EXPECT_THAT(log.message(), HasSubstr("cannot get pods/log 'p'"));
  pod["metadata"]["name"] = "Not A Name";
  const absl::Status invalid = client_->Create(kPods, pod).status();
  EXPECT_TRUE(IsInvalid(invalid)) << invalid;
  EXPECT_EQ(ApiErrorOf(invalid)->causes[0].field, "metadata.name");
}

TEST_F(ClusterTest, ConvertsErrors) {
  const ResourceKind nothing{"nobody.example", "v1", "things", "Thing"};
  EXPECT_TRUE(IsUnknownResource(client_->List(nothing).status()))
      << client_->List(nothing).status();
  const ResourceKind thing{"apps", "v1", "things", "Thing"};
  EXPECT_TRUE(IsUnknownResource(client_->Get(thing, Key("a")).status()));
  const absl::Status nowhere =
      client_->Create(kConfigMaps, {{"metadata", {{"name", "a"}, {"namespace", "no-such"}}}})
          .status();
  EXPECT_TRUE(IsNoSuchObject(nowhere)) << nowhere;
  ClusterConfig config = *Load("admin");
  config.user.impersonate = "nobody";
  const auto nobody = *Client::Create(config);
  const absl::Status forbidden =
      nobody->Patch(kLeases, Key("a"), Json::object(), {.subresource = "status"}).status();
  EXPECT_TRUE(IsForbidden(forbidden));
  EXPECT_THAT(forbidden.message(),
              HasSubstr("{apiGroups: [\"coordination.k8s.io\"], resources: [\"leases/status\"], "
                        "verbs: [\"patch\"]}, in a Role of namespace '" +
                        space_ + "'"));
  config = *Load("token");
  EXPECT_TRUE((*Client::Create(config))->GetPath("/version").ok());
  config.user.token = {.data = "wrong"};
  EXPECT_TRUE(absl::IsUnauthenticated((*Client::Create(config))->GetPath("/version").status()));
}

TEST_F(ClusterTest, WarningsOfTheServer) {
  constexpr ResourceKind kOld{"apiextensions.k8s.io", "v1beta1", "customresourcedefinitions",
                              "CustomResourceDefinition", false};
  ASSERT_TRUE(client_->List(kOld).ok());
  absl::MutexLock lock(&mutex_);
  EXPECT_THAT(warnings_, Contains(HasSubstr("deprecated")));
}

TEST_F(ClusterTest, AnInformerFollowsChanges) {
  ASSERT_TRUE(client_->Create(kConfigMaps, ConfigMap("a")).ok());
  absl::Mutex mutex;
  std::vector<std::string> events;
  const auto record = [&](const std::string& text) {
    absl::MutexLock lock(&mutex);
    events.push_back(text);
  };
  Informer informer(
      *client_, {.kind = kConfigMaps, .selection = {.ns = space_, .labels = "app=test"}},
      {.added = [&](const Object& object) { record("added " + NameOf(*object)); },
       .updated = [&](const Object&,
                      const Object& object) { record("updated " + NameOf(*object)); },
       .deleted = [&](const Object& object) { record("deleted " + NameOf(*object)); }});
  informer.Start();
  ASSERT_TRUE(informer.WaitUntilSynced(absl::Seconds(30)));
  ASSERT_TRUE(client_->Create(kConfigMaps, ConfigMap("b")).ok());
  ASSERT_TRUE(client_->Patch(kConfigMaps, Key("b"), {{"data", {{"x", "2"}}}}).ok());
  ASSERT_TRUE(client_->Delete(kConfigMaps, Key("a")).ok());
  const auto all = [&] { return events.size() == 4; };
  absl::MutexLock lock(&mutex);
  EXPECT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(30)));
  EXPECT_THAT(events, testing::ElementsAre("added a", "added b", "updated b", "deleted a"));
}

TEST_F(ClusterTest, ReadsMetadataOnly) {
  ASSERT_TRUE(client_->Create(kConfigMaps, ConfigMap("a"), {.discard_response = true}).ok());
  const Selection selection{.ns = space_, .labels = "app=test"};
  const auto list =
      client_->List(kConfigMaps, {.selection = selection, .detail = Detail::kMetadata});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_THAT(list->items, SizeIs(1));
  std::vector<Json> seen{list->items[0]};
  ASSERT_TRUE(client_->Create(kConfigMaps, ConfigMap("b")).ok());
  const absl::Status watched = Watch(*client_, kConfigMaps,
                                     {.selection = selection,
                                      .detail = Detail::kMetadata,
                                      .resource_version = list->resource_version},
                                     [&](WatchEvent event) {
                                       if (event.type == WatchEvent::Type::kBookmark)
                                         return absl::OkStatus();
                                       seen.push_back(std::move(event.object));
                                       return absl::AbortedError("that is enough");
                                     });
  EXPECT_TRUE(absl::IsAborted(watched)) << watched;
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_EQ(NameOf(seen[1]), "b");
  for (const Json& object : seen) {
    EXPECT_EQ(TextAt(object, "/kind"), "ConfigMap");
    EXPECT_EQ(LabelOf(object, "app"), "test");
    EXPECT_FALSE(object.contains("data"));
  }
}

constexpr char kPod[] = R"({
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "a", "labels": {"app": "test", "none": ""}, "annotations": {"about": "ü"}},
  "spec": {"automountServiceAccountToken": false, "schedulerName": "nobody",
           "containers": [{"name": "main", "image": "i"}]}})";
constexpr char kPodStatus[] = R"({
  "phase": "Running", "startTime": "2024-05-01T12:00:00Z",
  "conditions": [{"type": "Ready", "status": "True"}],
  "containerStatuses": [{
    "name": "main", "image": "i", "imageID": "i", "ready": true, "restartCount": 1,
    "state": {"running": {"startedAt": "2024-05-01T12:00:02Z"}},
    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                                 "startedAt": "2024-05-01T12:00:00Z",
                                 "finishedAt": "2024-05-01T12:00:01Z"}}}]})";

// Returns the members of a pod that are read from protobuf, without those that are null or false in
// one encoding and missing in the other.
Json Comparable(Json pod) {
  const auto erase = [](Json& object, std::initializer_list<const char*> members) {
    for (const char* member : members) object.erase(member);
  };
  erase(pod, {"spec"});
  erase(pod["metadata"], {"managedFields"});
  erase(pod["metadata"]["ownerReferences"][0], {"blockOwnerDeletion"});
  erase(pod["status"], {"qosClass"});
  erase(pod["status"]["conditions"][0], {"lastTransitionTime", "lastProbeTime"});
  erase(pod["status"]["containerStatuses"][0], {"image", "imageID"});
  return pod;
}

TEST_F(ClusterTest, PodsWithoutTheirSpec) {
  const auto owner = client_->Create(kConfigMaps, ConfigMap("owner"));
  ASSERT_TRUE(owner.ok()) << owner.status();
  Json pod = Json::parse(kPod);
  pod["metadata"]["namespace"] = space_;
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                     {"kind", "ConfigMap"},
                                                     {"name", "owner"},
                                                     {"uid", UidOf(*owner)},
                                                     {"controller", true}}});
  const auto created = client_->Create(kPods, pod);
  ASSERT_TRUE(created.ok()) << created.status();
  const Selection selection{.ns = space_};
  const auto list = client_->List(kPods, {.selection = selection, .detail = Detail::kStatus});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_THAT(list->items, SizeIs(1));
  EXPECT_EQ(TextAt(list->items[0], "/status/phase"), "Pending");
  const auto patched = client_->Patch(kPods, Key("a"), {{"status", Json::parse(kPodStatus)}},
                                      {.subresource = "status"});
  ASSERT_TRUE(patched.ok()) << patched.status();
  Json seen;
  const absl::Status watched = Watch(*client_, kPods,
                                     {.selection = selection,
                                      .detail = Detail::kStatus,
                                      .resource_version = list->resource_version},
                                     [&](WatchEvent event) {
                                       EXPECT_EQ(event.type, WatchEvent::Type::kModified);
                                       seen = std::move(event.object);
                                       return absl::AbortedError("that is enough");
                                     });
  EXPECT_TRUE(absl::IsAborted(watched)) << watched;
  EXPECT_FALSE(seen.contains("spec"));
  EXPECT_EQ(Comparable(seen), Comparable(*patched));
}

TEST_F(ClusterTest, ErrorsInEitherEncoding) {
  const auto written =
      client_->Create(kConfigMaps, ConfigMap("Not A Name"), {.discard_response = true});
  EXPECT_TRUE(IsInvalid(written.status())) << written.status();
  EXPECT_THAT(written.status().message(), HasSubstr("metadata.name"));
  const auto read = client_->List(
      kPods, {.selection = {.ns = space_, .labels = "!!"}, .detail = Detail::kStatus});
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  EXPECT_THAT(read.status().message(), HasSubstr("unable to parse requirement"));
}

TEST_F(ClusterTest, ElectsOneLeader) {
  LeaderElector a(*client_, {.lease = Key("lease"), .identity = "a"});
  LeaderElector b(*client_, {.lease = Key("lease"), .identity = "b"});
  auto step = a.Step();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(*step);
  EXPECT_TRUE(*a.Step());
  EXPECT_FALSE(*b.Step());
  a.Release();
  step = b.Step();
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_TRUE(*step);
}

}  // namespace
}  // namespace muster::k8s
