#include "jobs/notebook/subject.h"

#include "base/files/files.h"
#include "gmock/gmock.h"
#include "jobs/testing.h"
#include "nlohmann/json.hpp"

namespace muster::jobs {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

constexpr char kFile[] =
    "{name: x, model_dir: /m, env: {A: b}, notebook: {password: hunter22, port: 9999},\n"
    " roles: {chief: {command: t}, worker: {replicas: 2, command: t}, evaluator: {command: t}}}";

class SubjectTest : public testing::Test {
 protected:
  TestService service_;
};

TEST_F(SubjectTest, AnObserverIsNotATask) {
  cluster::ClusterSpec addresses;
  addresses.Set({"chief", 0}, "127.0.0.1:1000");
  for (int i = 0; i < 2; ++i) addresses.Set({"worker", i}, platform::kUnassigned);
  addresses.Set({"evaluator", 0}, "127.0.0.1:1003");
  service_.local().addresses = addresses;
  const auto subject = SubjectOfFile(*service_, service_.Load(kFile));
  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_EQ(subject->job, "x");
  EXPECT_THAT(subject->folder.path(), StartsWith((*service_).home() + "/notebooks/x-"));
  const auto config = nlohmann::json::parse(subject->env.at("TF_CONFIG"));
  EXPECT_EQ(config.count("task"), 0);
  EXPECT_EQ(config["model_dir"], "/m");
  EXPECT_EQ(config["cluster"].dump(),
            R"({"chief":["127.0.0.1:1000"],"worker":["127.0.0.1:2222","127.0.0.1:2223"]})");
  EXPECT_EQ(subject->env.at("CLUSTER_CONFIG"), config["cluster"].dump());
  EXPECT_THAT(subject->env, Contains(Pair("A", "b")));
  EXPECT_THAT(subject->env, Contains(Pair("MUSTER_MODEL_DIR", "/m")));
  EXPECT_THAT(subject->env, Contains(Pair("MUSTER_NOTEBOOK_JOB", "x")));
  EXPECT_THAT(subject->env, Not(Contains(Key("MUSTER_JOB_ID"))));
  EXPECT_EQ(subject->password, "hunter22");
  EXPECT_EQ(subject->port, 9999);
}

TEST_F(SubjectTest, WithoutAddressesThereIsNoCluster) {
  cluster::ClusterSpec unknown;
  unknown.Set({"chief", 0}, platform::kUnassigned);
  service_.cluster().addresses = unknown;
  const auto subject = SubjectOfFile(*service_, service_.Load(kFile, job::KubernetesTarget()));
  ASSERT_TRUE(subject.ok()) << subject.status();
  EXPECT_THAT(subject->env, Not(Contains(Key("TF_CONFIG"))));
}

TEST_F(SubjectTest, FilesInDifferentFoldersHaveDifferentNotebooks) {
  job::Submission one = service_.Load(kFile), other = one;
  other.source_name = "/elsewhere/job.yaml";
  const auto first = SubjectOfFile(*service_, one), second = SubjectOfFile(*service_, other);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->folder.path(), second->folder.path());
}

TEST(NotebookLaunchTest, IsSavedAndLoaded) {
  const base::TempDir home;
  const NotebookFolder folder = NotebookFolder::OfJob(home.path());
  EXPECT_THAT(folder.path(), EndsWith("/notebook"));
  ASSERT_TRUE(folder.Create().ok());
  const NotebookLaunch launch{
      .argv = {"a", "b"}, .port = 7, .page = "/p", .timeout_seconds = 3, .attached = false};
  ASSERT_TRUE(launch.Save(folder).ok());
  const auto loaded = NotebookLaunch::Load(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->argv, launch.argv);
  EXPECT_EQ(loaded->port, 7);
  EXPECT_EQ(loaded->page, "/p");
  EXPECT_EQ(loaded->timeout_seconds, 3);
  EXPECT_FALSE(loaded->attached);
  ASSERT_TRUE(base::ReplaceFile(folder.launch(), "{").ok());
  EXPECT_EQ(NotebookLaunch::Load(folder).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace muster::jobs
