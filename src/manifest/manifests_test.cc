#include "manifest/manifests.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "codec/yaml_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"
#include "manifest/names.h"
#include "manifest/notebook.h"

namespace muster::manifest {
namespace {

using testing::HasSubstr;

RenderOptions Options() {
  return {.create_namespace = true,
          .trainer_image = "muster-trainer:1",
          .notebook_image = "notebook:1",
          .salt = "5a17",
          .tls = job::JobTls{"authority", "certificate", "key"}};
}

std::string Rendered(const job::JobSpec& spec) {
  const auto objects = RenderJob(spec, Options());
  if (!objects.ok()) return absl::StrCat("!", objects.status().message());
  std::string text;
  for (const Object& object : *objects) absl::StrAppend(&text, "---\n", codec::ToYaml(object));
  return text;
}

// Compares each example with the golden file beside it. MUSTER_UPDATE_GOLDEN=1 rewrites it.
class GoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, Manifests) {
  const std::string stem = absl::StrCat(MUSTER_MANIFESTS_DIR, "/", GetParam());
  const auto job = base::ReadFile(stem + ".job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string rendered = Rendered(job::MustParse(*job));
  if (std::getenv("MUSTER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::ReplaceFile(stem + ".golden.yaml", rendered, 0644).ok());
  }
  EXPECT_EQ(rendered, base::ReadFile(stem + ".golden.yaml").value_or("no such file"));
}

// The same for a cluster with an operator, under the name of a run.
class TfJobGoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(TfJobGoldenTest, Manifests) {
  const std::string stem = absl::StrCat(MUSTER_MANIFESTS_DIR, "/", GetParam());
  job::JobSpec spec = job::MustParse(base::ReadFile(stem + ".job.yaml").value());
  spec.name += "-7kbzr";
  const auto objects = RenderTfJob(spec, Options());
  ASSERT_TRUE(objects.ok()) << objects.status();
  const std::string rendered = codec::ToYamlDocuments(*objects);
  if (std::getenv("MUSTER_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::ReplaceFile(stem + ".tfjob.golden.yaml", rendered, 0644).ok());
  }
  EXPECT_EQ(rendered, base::ReadFile(stem + ".tfjob.golden.yaml").value_or("no such file"));

  // An operator creates the same pods from the TFJob as `render` does from the job.
  const job::JobSpec read = job::MustParse(objects->back().dump());
  EXPECT_EQ(read.model_dir, spec.model_dir);
  EXPECT_EQ(read.policies.max_restarts, spec.policies.max_restarts);
  const cluster::ClusterSpec cluster = Addresses(spec, "default", "");
  for (const cluster::TaskId& task : spec.Tasks()) {
    const PodOptions options{.job_id = spec.name, .trainer_image = "muster-trainer:1"};
    Object made = *PodTemplate(read, cluster, task, options);
    Object direct = *PodTemplate(spec, cluster, task, options);
    for (Object* pod : {&made, &direct}) {
      Object& container = (*pod)["spec"]["containers"][0];
      // The order of variables differs.
      nlohmann::json variables;
      for (const Object& entry : container["env"]) variables[entry["name"]] = entry;
      container["env"] = variables;
      for (const char* key : {"name", "ports"}) container.erase(key);
      // The operator adds only TF_CONFIG to the containers of a manifest.
      if (spec.FindRole(task.role)->server != job::Server::kNone) container.erase("env");
    }
    // The order of members differs, too.
    EXPECT_EQ(nlohmann::json::diff(made["spec"]["containers"], direct["spec"]["containers"]),
              nlohmann::json::array())
        << task.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Manifests, TfJobGoldenTest,
                         testing::Values("train", "command", "tfjob", "v1alpha1"));

INSTANTIATE_TEST_SUITE_P(Manifests, GoldenTest,
                         testing::Values("train", "command", "tfjob", "v1alpha1", "cluster"));

TEST(RenderTest, TheNamespaceOfTheCommandWins) {
  const job::JobSpec spec = job::MustParse(
      "{name: a, image: i, kubernetes: {namespace: own}, roles: {worker: {command: x}}}");
  RenderOptions options = Options();
  EXPECT_EQ(RenderJob(spec, options)->back()["metadata"]["namespace"], "own");
  options.kubernetes_namespace = "other";
  EXPECT_EQ(RenderJob(spec, options)->back()["metadata"]["namespace"], "other");
}

TEST(RenderTest, RejectsJobsThatCannotRunInAPod) {
  EXPECT_THAT(Rendered(job::MustParse("{name: a, roles: {worker: {command: x}}}")),
              HasSubstr("role 'worker' has no image; set 'image'"));
  const std::string train = "train: {model: cnn, steps: 1, data: {format: mnist, path: /d}}";
  EXPECT_THAT(Rendered(job::MustParse("{name: a, model_dir: 's3://b/m', " + train + "}")),
              HasSubstr("'path' of data is /d, a path of this machine"));
  EXPECT_THAT(Rendered(job::MustParse("{name: a, " + train + "}")),
              HasSubstr("model_dir is /home/me/runs/a, a path of this machine"));
  EXPECT_THAT(
      Rendered(job::MustParse("{name: a, model_dir: /m/a, kubernetes: {container: {volumeMounts: "
                              "[{name: m, mountPath: /m}, {name: d, mountPath: /d}]}}, " +
                              train + "}")),
      HasSubstr("kind: Job"));
  EXPECT_THAT(Rendered(job::MustParse(absl::StrCat("{name: ", std::string(57, 'a'),
                                                   ", image: i, roles: {worker: {command: x}}}"))),
              HasSubstr("which is 66 characters long; 63 are allowed"));
}

TEST(RenderTest, ReportsSettingsThatPlainObjectsDoNotExpress) {
  const std::string job = "{name: a, image: i, roles: {worker: {command: x}}";
  EXPECT_THAT(RenderLimits(job::MustParse(job + "}")), testing::IsEmpty());
  EXPECT_THAT(
      RenderLimits(job::MustParse(
          job + ", policies: {restart_scope: job, start_timeout: 5m, stall: {timeout: 1m}}}")),
      testing::ElementsAre(HasSubstr("restart_scope: "), HasSubstr("stall: "),
                           HasSubstr("start_timeout: ")));
  EXPECT_THAT(
      RenderLimits(job::MustParse(
          "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {runPolicy: "
          "{cleanPodPolicy: All, suspend: true}, tfReplicaSpecs: {Worker: {template: {spec: "
          "{containers: [{name: tensorflow, image: i}]}}}}}}")),
      testing::ElementsAre(HasSubstr("runPolicy: cleanPodPolicy: needs the operator")));
}

TEST(WorkFilesTest, PodsOfTheRolesUnpackThem) {
  const job::JobSpec spec = job::MustParse(R"(
name: pets
image: python:3
roles:
  worker:
    command: python train.py
    working_dir: src
    resources: {cpus: 2, memory: 1GiB, gpus: 1}
    kubernetes: {container: {imagePullPolicy: Always, securityContext: {runAsUser: 1000}}}
  ps: {command: serve}
)");
  RenderOptions options = Options();
  options.files = {.digest = "d1", .parts = 2, .roles = {"worker"}};
  options.file_parts = {"one", "two"};
  const auto objects = RenderTfJob(spec, options).value();
  EXPECT_EQ(objects[1]["metadata"]["name"], "pets-files-d1-0");
  EXPECT_EQ(objects[2]["binaryData"]["part-001"], "dHdv");
  EXPECT_EQ(objects[2]["immutable"], true);
  const Object& roles = objects.back()["spec"]["tfReplicaSpecs"];
  const Object& pod = roles["Worker"]["template"]["spec"];
  const Object &unpacker = pod["initContainers"][0], &task = pod["containers"][0];
  EXPECT_EQ(task["workingDir"], "/muster/work/src");
  EXPECT_EQ(unpacker["image"], "python:3");
  EXPECT_EQ(unpacker["imagePullPolicy"], "Always");
  EXPECT_EQ(unpacker["securityContext"], task["securityContext"]);
  EXPECT_EQ(unpacker["resources"]["limits"], Object({{"cpu", "2"}, {"memory", "1Gi"}}));
  const Object& ps = roles["PS"]["template"]["spec"];
  EXPECT_FALSE(ps.contains("initContainers"));
  EXPECT_FALSE(ps["containers"][0].contains("workingDir"));
  // ConfigMaps that exist are not rendered again.
  options.file_parts.clear();
  EXPECT_EQ(RenderTfJob(spec, options).value().size(), objects.size() - 2);
}

TEST(NotebookTest, SharesTheVolumesOfTheJob) {
  const std::string text = Rendered(job::MustParse(
      "{name: a, image: i, model_dir: /m/a, notebook: {}, roles: {worker: {command: x}}, "
      "kubernetes: {pod: {volumes: [{name: m, persistentVolumeClaim: {claimName: c}}]}, "
      "container: {volumeMounts: [{name: m, mountPath: /m}]}}}"));
  const std::string notebook = text.substr(text.find("kind: Deployment"));
  EXPECT_THAT(notebook, HasSubstr("--logdir=/m/a"));
  EXPECT_THAT(notebook, HasSubstr("claimName: c"));
  EXPECT_THAT(notebook, testing::Not(HasSubstr("mountPath: /logs")));
}

TEST(NotebookTest, ThePasswordIsHashedAsJupyterDoes) {
  // The expected hash was computed by another implementation.
  EXPECT_EQ(PasswordHash("hunter2", "5a17"),
            "sha256:5a17:"
            "f32b2cc6968258907dfd43e7a3f0602654b382af14e207dbe5c4b49fc68dba35");
  const job::JobSpec spec = job::MustParse(
      "{name: a, image: i, notebook: {password: hunter2}, roles: {worker: {command: x}}}");
  EXPECT_THAT(Rendered(spec), testing::Not(HasSubstr("hunter2")));
  EXPECT_EQ(NotebookName(spec), "a-notebook");
}

}  // namespace
}  // namespace muster::manifest
