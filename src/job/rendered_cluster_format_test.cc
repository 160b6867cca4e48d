#include "job/rendered_cluster_format.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(RenderedClusterFormatTest, RolesAndNotebook) {
  const JobSpec job = MustParse(R"(
imports: [{name: tensorflow-cluster, path: templates/cluster.jinja}]
resources:
  - type: tensorflow-cluster
    properties:
      image: tf:1
      namespace: ml
      jobs:
        - {name: ps, num_tasks: 2}
        - {name: worker, num_tasks: 3, port: 9090}
  - type: jupyter-service
    properties: {namespace: ml, password: 0042}
)");
  EXPECT_EQ(job.format, JobFormat::kRenderedCluster);
  EXPECT_EQ(job.name, "tensorflow-cluster");
  EXPECT_EQ(job.kubernetes_namespace, "ml");
  EXPECT_EQ(job.roles[0].replicas, 2);
  EXPECT_EQ(job.roles[0].port, 8080);
  EXPECT_EQ(job.roles[0].image, "tf:1");
  EXPECT_TRUE(job.roles[0].command.empty());
  EXPECT_EQ(job.roles[1].port, 9090);
  EXPECT_EQ(job.notebook.dump(), R"({"password":"0042"})");
  EXPECT_EQ(job.policies.success, SuccessPolicy::kAllWorkers);
}

TEST(RenderedClusterFormatTest, Mistakes) {
  EXPECT_EQ(
      MistakesOf("resources:\n"
                 "- type: tensorflow-clutser\n"
                 "  properties: {}\n"
                 "- type: tensorflow-cluster\n"
                 "  properties:\n"
                 "    jobs: [{name: worker, tasks: 1}, {name: worker, num_tasks: 1}]\n"
                 "    imag: x\n"
                 "- {type: jupyter-service, properties: {}}\n"),
      "job.yaml:2:9: 'type' of a resource must be tensorflow-cluster | jupyter-service, not text "
      "'tensorflow-clutser' (did you mean 'tensorflow-cluster'?)\n"
      "job.yaml:6:12: an entry of 'jobs' lacks 'num_tasks'; expected the number of its tasks\n"
      "job.yaml:6:27: unknown key 'tasks' in an entry of 'jobs'; expected one of: name, "
      "num_tasks, port\n"
      "job.yaml:6:38: a second entry of 'jobs' with the name 'worker'\n"
      "job.yaml:7:5: unknown key 'imag' in the properties of tensorflow-cluster (did you mean "
      "'image'?)\n"
      "job.yaml:8:39: the properties of jupyter-service lacks 'password'; expected the notebook's "
      "password");
  EXPECT_EQ(MistakesOf("resources: []\n"),
            "job.yaml:1:12: no resource of type tensorflow-cluster; expected one");
  EXPECT_THAT(MistakesOf("resources: [{type: tensorflow-cluster, properties: {jobs: 5}}]\n"),
              HasSubstr("'jobs' must be a list, not the number 5"));
}

}  // namespace
}  // namespace muster
