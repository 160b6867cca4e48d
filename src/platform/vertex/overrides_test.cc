#include "platform/vertex/overrides.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::vertex {
namespace {

using ::testing::HasSubstr;

constexpr char kTrained[] = R"(
name: j
train: {model: cnn, data: {format: mnist, path: /d}, steps: 5}
roles: )";

std::string Rejection(const job::VertexTarget& target, job::JobSpec spec) {
  return std::string(ApplyOverrides(target, spec).message());
}

TEST(VertexOverrides, AddARoleThatTheFileDoesNotHave) {
  job::JobSpec spec = job::MustParse(std::string(kTrained) + "{chief: {env: {A: b}}}\n");
  ASSERT_EQ(spec.train["strategy"], "allreduce");
  ASSERT_TRUE(ApplyOverrides({.workers = 2, .parameter_servers = 1}, spec).ok());
  ASSERT_EQ(spec.Tasks().size(), 4U);
  EXPECT_EQ(spec.FindRole("worker")->replicas, 2);
  EXPECT_EQ(spec.FindRole("worker")->env.at("A"), "b");
  EXPECT_EQ(spec.FindRole("ps")->replicas, 1);
  EXPECT_EQ(spec.train["strategy"], "sync");  // the default for a job with ps tasks
}

TEST(VertexOverrides, AnAddedRoleRunsTheProgramOfTheLeadingTask) {
  job::JobSpec spec =
      job::MustParse("name: j\nroles: {evaluator: {command: [e]}, master: {command: [m, x]}}\n");
  ASSERT_TRUE(ApplyOverrides({.parameter_servers = 3}, spec).ok());
  EXPECT_EQ(spec.FindRole("ps")->command, (std::vector<std::string>{"m", "x"}));
}

TEST(VertexOverrides, ZeroRemovesARole) {
  job::JobSpec spec = job::MustParse(std::string(kTrained) + "{chief: {}, worker: 2, ps: 1}\n");
  ASSERT_TRUE(ApplyOverrides({.workers = 0, .parameter_servers = 0}, spec).ok());
  EXPECT_EQ(spec.Tasks().size(), 1U);
  EXPECT_EQ(spec.train["strategy"], "allreduce");
  // Once more, as for a resumed job.
  ASSERT_TRUE(ApplyOverrides({.workers = 0, .parameter_servers = 0}, spec).ok());
  EXPECT_EQ(spec.Tasks().size(), 1U);
}

TEST(VertexOverrides, AJobThatWouldBeInvalidIsRejected) {
  const job::JobSpec worker = job::MustParse(std::string(kTrained) + "{worker: 2}\n");
  EXPECT_THAT(Rejection({.workers = 0}, worker), HasSubstr("nothing would train"));
  EXPECT_THAT(Rejection({.workers = job::kMaxReplicas + 1}, worker), HasSubstr("at most"));
  const job::JobSpec served = job::MustParse(std::string(kTrained) + "{worker: 2, ps: 1}\n");
  EXPECT_THAT(Rejection({.workers = 0}, served), HasSubstr("no task that trains"));
  job::JobSpec async = served;
  async.train["strategy"] = "async";
  EXPECT_THAT(Rejection({.parameter_servers = 0}, async), HasSubstr("'strategy: async' needs ps"));
}

TEST(VertexOverrides, ADataSetNeedsNoScheme) {
  job::JobSpec spec = job::MustParse(std::string(kTrained) + "{worker: {}}\n");
  ASSERT_TRUE(ApplyOverrides({.dataset = "bucket/some/path"}, spec).ok());
  EXPECT_EQ(spec.train["data"]["path"], "gs://bucket/some/path");
  ASSERT_TRUE(ApplyOverrides({.dataset = "s3://b/p"}, spec).ok());
  EXPECT_EQ(spec.train["data"]["path"], "s3://b/p");
  for (const char* local : {"/data", "./data", "../data", "~/data"}) {
    EXPECT_THAT(Rejection({.dataset = local}, spec), HasSubstr("must be a URL")) << local;
  }
  EXPECT_THAT(Rejection({.dataset = "b/p"}, job::MustParse("name: j\ncommand: x\nroles: {a: 1}\n")),
              HasSubstr("no `train` section"));
}

TEST(VertexOverrides, ABucketMayBeGivenAsAUrl) {
  EXPECT_EQ(BucketName("gs://b/"), "b");
  EXPECT_EQ(BucketName("b"), "b");
}

}  // namespace
}  // namespace muster::vertex
