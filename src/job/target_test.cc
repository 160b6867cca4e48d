#include "job/target.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

SshTarget OnHosts() {
  SshTarget target{.hosts = "a:2,b"};
  target.assignment.hosts = {
      {.spec = {.name = "a", .address = "10.0.0.1", .user = "me", .port = 22, .slots = 2},
       .address = "10.0.0.1",
       .folder = "/home/me/x",
       .trainer = "/t",
       .cpus = 8}};
  target.assignment.holder = {{{"worker", 0}, "a"}};
  target.assignment.agent = "~/.cache/muster/agent-1";
  target.assignment.tls = true;
  return target;
}

VertexTarget OnVertex() {
  return {.project = "p",
          .region = "us-central1",
          .bucket = "b",
          .folder_prefix = "lumi_",
          .tier = "CUSTOM",
          .master_type = "m",
          .worker_type = "w",
          .parameter_server_type = "s",
          .workers = 3,
          .parameter_servers = 0,
          .image = "i",
          .image_repository = "r",
          .dataset = "gs://d",
          .rebuild = true,
          .run = {.packages = {"x"},
                  .folder = "gs://b/f",
                  .custom_job = "projects/1",
                  .tries = {"n1", "n2"},
                  .run_sha256 = "12",
                  .tls_sha256 = "34",
                  .agent_sha256 = "56",
                  .asked_us = 5}};
}

TEST(Target, KeepsEveryFieldAsJson) {
  const KubernetesTarget in_cluster{.kubeconfig = "/k",
                                    .context = "c",
                                    .ns = "n",
                                    .trainer_image = "i",
                                    .image_repository = "r",
                                    .object = {.name = "j", .uid = "u"},
                                    .files = {.digest = "d", .parts = 2, .roles = {"worker"}}};
  for (const Target& target :
       {Target(LocalTarget()), Target(OnHosts()), Target(in_cluster), Target(OnVertex())}) {
    EXPECT_EQ(TargetFromJson(TargetToJson(target)), target) << TargetToJson(target).dump();
  }
}

// Versions before this one wrote "place", without the name of the platform.
TEST(Target, ReadsThePlaceOfAnEarlierVersion) {
  Target on_hosts = OnHosts();
  std::get<SshTarget>(on_hosts).hosts.clear();
  EXPECT_EQ(TargetFromPlace(TargetToJson(on_hosts)["assignment"]), on_hosts);
  const nlohmann::json in_cluster = {{"kubeconfig", ""},     {"context", "c"}, {"namespace", "n"},
                                     {"trainer_image", "i"}, {"job", "j"},     {"uid", "u"}};
  EXPECT_EQ(
      TargetFromPlace(in_cluster),
      Target(KubernetesTarget{
          .context = "c", .ns = "n", .trainer_image = "i", .object = {.name = "j", .uid = "u"}}));
  nlohmann::json on_vertex = TargetToJson(OnVertex());
  on_vertex.erase("platform");
  EXPECT_EQ(TargetFromPlace(on_vertex), Target(OnVertex()));
  EXPECT_EQ(TargetFromPlace(nullptr), Target(LocalTarget()));
}

TEST(Target, NamesItsPlatform) {
  EXPECT_EQ(PlatformOf(LocalTarget()), "local");
  EXPECT_EQ(PlatformOf(SshTarget()), "ssh");
  EXPECT_EQ(PlatformOf(KubernetesTarget()), "kubernetes");
  EXPECT_EQ(PlatformOf(VertexTarget()), "vertex");
}

TEST(Target, IsForeignWhenItWasNotSubmittedFromHere) {
  EXPECT_FALSE(IsForeign(LocalTarget()));
  EXPECT_FALSE(IsForeign(OnHosts()));
  EXPECT_FALSE(IsForeign(KubernetesTarget{.object = {.uid = "u"}}));
  EXPECT_TRUE(IsForeign(KubernetesTarget{.object = {.name = "theirs", .uid = "u"}}));
  EXPECT_FALSE(IsForeign(OnVertex()));
  EXPECT_TRUE(IsForeign(VertexTarget{.run = {.custom_job = "projects/1"}}));
}

TEST(Target, DamagedFieldsAreLeftOut) {
  nlohmann::json json = TargetToJson(OnHosts());
  json["assignment"]["hosts"] = {1, nullptr, "x"};
  json["assignment"]["holder"] = 7;
  const auto target = std::get<SshTarget>(TargetFromJson(json));
  EXPECT_EQ(target.hosts, "a:2,b");
  EXPECT_EQ(target.assignment.hosts.size(), 3u);
  EXPECT_EQ(target.assignment.hosts[0].spec.name, "");
  EXPECT_TRUE(target.assignment.holder.empty());
  EXPECT_EQ(TargetFromJson(nlohmann::json(3)), Target(LocalTarget()));
}

TEST(Target, UnsetFieldsAreInherited) {
  const KubernetesTarget previous{
      .context = "c", .ns = "n", .trainer_image = "old", .object = {.uid = "u"}};
  EXPECT_EQ(InheritTarget(previous, KubernetesTarget{.trainer_image = "new"}),
            Target(KubernetesTarget{
                .context = "c", .ns = "n", .trainer_image = "new", .object = {.uid = "u"}}));
  SshTarget other = OnHosts();
  other.hosts = "c";
  EXPECT_EQ(InheritTarget(OnHosts(), SshTarget{.hosts = "c"}), Target(other));
  EXPECT_EQ(InheritTarget(OnVertex(), VertexTarget()), Target(OnVertex()));
}

TEST(Target, AnImageAndARepositoryReplaceEachOther) {
  const KubernetesTarget with_image{.ns = "n", .trainer_image = "i"};
  const KubernetesTarget with_repository{.ns = "n", .image_repository = "r"};
  EXPECT_EQ(InheritTarget(with_image, KubernetesTarget{.image_repository = "r"}),
            Target(with_repository));
  EXPECT_EQ(InheritTarget(with_repository, KubernetesTarget{.trainer_image = "i"}),
            Target(with_image));
  EXPECT_EQ(InheritTarget(with_repository, KubernetesTarget()), Target(with_repository));
  EXPECT_EQ(InheritTarget(VertexTarget{.image = "i"}, VertexTarget{.image_repository = "r"}),
            Target(VertexTarget{.image_repository = "r"}));
}

TEST(Target, TheRequestOmitsTheStateOfTheJob) {
  const Target vertex = RequestOf(OnVertex());
  EXPECT_EQ(std::get<VertexTarget>(vertex).run, VertexRun());
  EXPECT_EQ(std::get<VertexTarget>(vertex).tier, "CUSTOM");
  const Target ssh = RequestOf(OnHosts());
  EXPECT_EQ(std::get<SshTarget>(ssh), SshTarget{.hosts = "a:2,b"});
  const Target cluster = RequestOf(
      KubernetesTarget{.ns = "n", .object = {.uid = "u"}, .files = {.digest = "d", .parts = 1}});
  EXPECT_EQ(std::get<KubernetesTarget>(cluster), KubernetesTarget{.ns = "n"});
}

TEST(Target, IsDescribedForPeople) {
  EXPECT_EQ(DescribeTarget(LocalTarget()), "on this machine");
  EXPECT_EQ(DescribeTarget(OnHosts()), "on a");
  EXPECT_EQ(DescribeTarget(SshTarget()), "on hosts over SSH");
  EXPECT_EQ(DescribeTarget(KubernetesTarget{.context = "c", .ns = "n"}),
            "in namespace 'n' of context 'c'");
  EXPECT_EQ(DescribeTarget(KubernetesTarget{.ns = "n"}), "in namespace 'n' of this cluster");
  EXPECT_EQ(DescribeTarget(OnVertex()), "on Vertex AI, in project 'p', region us-central1");
}

}  // namespace
}  // namespace muster::job
