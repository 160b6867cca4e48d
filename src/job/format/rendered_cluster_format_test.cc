#include "job/format/rendered_cluster_format.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
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
  EXPECT_EQ(job.roles[0].server, Server::kTensorFlow);
  EXPECT_EQ(job.roles[1].port, 9090);
  EXPECT_EQ(job.notebook.dump(), R"({"namespace":"ml","password":"0042"})");
  EXPECT_EQ(job.policies.success, SuccessPolicy::kAllWorkers);
}

// Returns a file with these jobs.
std::string Cluster(const std::string& jobs, const std::string& more = "") {
  return absl::StrCat("resources: [{type: tensorflow-cluster, properties: {jobs: ", jobs, more,
                      "}}]\n");
}

TEST(RenderedClusterFormatTest, AnyJobNames) {
  const JobSpec job = MustParse(
      Cluster("[{name: masters, num_tasks: 2}, {name: workers, num_tasks: 3}, {name: master, "
              "num_tasks: 2}, {name: chief, num_tasks: 1}, {name: evaluator, num_tasks: 2}]"));
  EXPECT_EQ(job.Tasks().size(), 10u);
  EXPECT_EQ(job.roles[1].name, "workers");
  EXPECT_EQ(MustParse(Cluster("[{name: ps, num_tasks: 2}]")).roles[0].replicas, 2);
  EXPECT_THAT(MistakesOf(Cluster("[{name: my_ps, num_tasks: 2}]")),
              HasSubstr("the job's name 'my_ps' is not valid; expected a letter first"));
  EXPECT_THAT(MistakesOf(Cluster("[{name: Ps, num_tasks: 2}, {name: ps, num_tasks: 2}]")),
              HasSubstr("a second entry of 'jobs' with the name 'ps'"));
  EXPECT_THAT(MistakesOf(Cluster("[]")), HasSubstr("the cluster has no task"));
}

TEST(RenderedClusterFormatTest, NamesThatServersMayNotUnderstandAreReported) {
  std::vector<std::string> warnings;
  ParseJobOptions options = TestOptions();
  options.warnings = &warnings;
  const auto job =
      ParseJob(Cluster("[{name: Worker, num_tasks: 1}, {name: my-ps, num_tasks: 1}]", ", image: i"),
               options);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->roles[0].name, "worker");
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0], HasSubstr("the job 'Worker' is called 'worker'"));
  EXPECT_THAT(warnings[1], HasSubstr("the name 'my-ps' contains '-'"));
}

TEST(RenderedClusterFormatTest, TheImageDeterminesTheServer) {
  const auto server = [](const std::string& image) {
    return MustParse(Cluster("[{name: ps, num_tasks: 1}]", image)).roles[0].server;
  };
  EXPECT_EQ(server(""), Server::kTrainer);
  EXPECT_EQ(server(", image: 'r/muster-trainer:1'"), Server::kTrainer);
  EXPECT_EQ(server(", image: 'tensorflow/tensorflow:1.4.0'"), Server::kTensorFlow);
  EXPECT_EQ(server(", image: 'gcr.io/me/worker'"), Server::kTensorFlow);
}

TEST(RenderedClusterFormatTest, ANotebookAlone) {
  const JobSpec job =
      MustParse("resources: [{type: jupyter-service, properties: {namespace: n, password: p}}]\n");
  EXPECT_EQ(job.name, "jupyter-service");
  EXPECT_EQ(job.kubernetes_namespace, "n");
  EXPECT_TRUE(job.roles.empty());
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
            "job.yaml:1:12: no resource; expected one of type tensorflow-cluster or "
            "jupyter-service");
  EXPECT_THAT(MistakesOf("resources: [{type: tensorflow-cluster, properties: {jobs: 5}}]\n"),
              HasSubstr("'jobs' must be a list, not the number 5"));
}

}  // namespace
}  // namespace muster::job
