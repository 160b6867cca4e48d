#include "job/submission.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

Submission OnKubernetes() {
  Submission submission{.id = "x-1",
                        .source = "name: x\n",
                        .working_dir = "/work",
                        .target = KubernetesTarget{.context = "c", .ns = "ml"}};
  submission.spec.name = "x";
  submission.spec.roles = {{.name = "worker", .command = {"true"}}};
  return submission;
}

TEST(SubmissionTest, IsReadBack) {
  const Submission submission = OnKubernetes();
  const auto read = SubmissionFromJson(SubmissionToJson(submission));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, "x-1");
  EXPECT_EQ(read->spec, submission.spec);
  EXPECT_EQ(read->target, submission.target);
}

TEST(SubmissionTest, AJobOfAnEarlierVersionKeepsItsTarget) {
  const Submission submission = OnKubernetes();
  nlohmann::json json = SubmissionToJson(submission);
  json.erase("target");
  json["place"] = {{"kubeconfig", ""},    {"context", "c"}, {"namespace", "ml"},
                   {"trainer_image", ""}, {"job", ""},      {"uid", ""}};
  const auto read = SubmissionFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->target, submission.target);
  json.erase("place");
  EXPECT_EQ(SubmissionFromJson(json)->target, Target(LocalTarget()));
}

}  // namespace
}  // namespace muster::job
