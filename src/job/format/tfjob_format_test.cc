#include "job/format/tfjob_format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kV1[] = R"(apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: dist-mnist
  namespace: kubeflow
  labels: {kueue.x-k8s.io/queue-name: q}
  creationTimestamp: null
spec:
  runPolicy:
    backoffLimit: 4
    activeDeadlineSeconds: 3600
    cleanPodPolicy: None
    suspend: false
  successPolicy: AllWorkers
  enableDynamicWorker: true
  tfReplicaSpecs:
    PS:
      replicas: 2
      restartPolicy: Never
      template: &pod
        spec:
          nodeSelector: {disk: ssd}
          containers:
            - {name: sidecar, image: envoy}
            - name: tensorflow
              image: tf:2
              command: [python, /mnist.py]
              args: [--steps, "10"]
              workingDir: /src
              env:
                - {name: A, value: "1"}
                - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}
                - {name: EMPTY}
              ports: [{name: tfjob-port, containerPort: 3333}]
              resources: {limits: {cpu: 500m, memory: 2Gi, nvidia.com/gpu: 1}}
    worker:
      replicas: 4
      restartPolicy: ExitCode
      template: *pod
)";

TEST(TfJobFormatTest, V1) {
  const JobSpec job = MustParse(kV1);
  EXPECT_EQ(job.format, JobFormat::kTfJobV1);
  EXPECT_EQ(job.name, "dist-mnist");
  EXPECT_EQ(job.kubernetes_namespace, "kubeflow");
  EXPECT_EQ(job.kubernetes["labels"]["kueue.x-k8s.io/queue-name"], "q");
  EXPECT_EQ(job.kubernetes["runPolicy"]["cleanPodPolicy"], "None");
  EXPECT_TRUE(job.dynamic_workers);
  EXPECT_EQ(job.policies.max_restarts, 4);
  EXPECT_EQ(job.policies.deadline, absl::Hours(1));
  EXPECT_EQ(job.policies.success, SuccessPolicy::kAllWorkers);
  ASSERT_EQ(job.roles.size(), 2u);
  const RoleSpec& ps = job.roles[0];
  EXPECT_EQ(ps.name, "ps");
  EXPECT_EQ(ps.replicas, 2);
  EXPECT_EQ(ps.restart, RestartPolicy::kNever);
  EXPECT_EQ(ps.command, (std::vector<std::string>{"python", "/mnist.py", "--steps", "10"}));
  EXPECT_EQ(ps.env, (std::map<std::string, std::string>{{"A", "1"}, {"EMPTY", ""}}));
  EXPECT_EQ(ps.working_dir, "/src");
  EXPECT_EQ(ps.image, "tf:2");
  EXPECT_EQ(ps.port, 3333);
  EXPECT_EQ(ps.resources, (Resources{.cpus = 0.5, .memory_bytes = int64_t{2} << 30, .gpus = 1}));
  EXPECT_EQ(ps.pod["spec"]["nodeSelector"]["disk"], "ssd");
  EXPECT_EQ(job.roles[1].name, "worker");
  EXPECT_EQ(job.roles[1].restart, RestartPolicy::kExitCode);
}

// Returns a TFJob of one worker. `spec` is added beside tfReplicaSpecs, `role` beside the template.
std::string Small(const std::string& spec = "", const std::string& role = "",
                  const std::string& container = "{name: tensorflow, image: tf}") {
  return absl::StrCat("{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {",
                      spec, "tfReplicaSpecs: {Worker: {", role, "template: {spec: {containers: [",
                      container, "]}}}}}}");
}

TEST(TfJobFormatTest, V1Defaults) {
  const JobSpec job = MustParse(Small());
  EXPECT_EQ(job.kubernetes_namespace, "default");
  EXPECT_TRUE(job.kubernetes.is_null());
  EXPECT_EQ(job.policies.success, SuccessPolicy::kChief);
  EXPECT_EQ(job.roles[0].replicas, 1);
  EXPECT_EQ(job.roles[0].restart, RestartPolicy::kNever);
  EXPECT_EQ(job.roles[0].port, 2222);
  EXPECT_TRUE(job.roles[0].command.empty());
}

TEST(TfJobFormatTest, V1Rejections) {
  EXPECT_THAT(
      MistakesOf(Small("succesPolicy: x, ")),
      HasSubstr("unknown key 'succesPolicy' in the TFJob's spec (did you mean 'successPolicy'?)"));
  EXPECT_THAT(
      MistakesOf(Small("successPolicy: AllWorker, ")),
      HasSubstr("'successPolicy' of the TFJob's spec must be AllWorkers, not text 'AllWorker'"));
  EXPECT_THAT(MistakesOf(Small("runPolicy: {cleanPodPolicy: Some}, ")),
              HasSubstr("'cleanPodPolicy' of runPolicy must be None | Running | All"));
  EXPECT_THAT(MistakesOf(Small("runPolicy: {managedBy: me}, ")),
              HasSubstr("'managedBy' of runPolicy"));
  EXPECT_THAT(MistakesOf(Small("", "replicas: -1, ")), HasSubstr("not the number -1"));
  EXPECT_THAT(MistakesOf(Small("", "restartPolicy: Sometimes, ")),
              HasSubstr("must be Never | OnFailure | Always | ExitCode, not text 'Sometimes'"));
  EXPECT_THAT(MistakesOf(Small("", "", "{name: tensorflow, image: ''}")),
              HasSubstr("has an empty image"));
  EXPECT_THAT(MistakesOf(Small("", "", "{name: tf, image: tf}")),
              HasSubstr("the template of 'Worker' has no container named 'tensorflow'"));
  EXPECT_THAT(MistakesOf(Small("", "", "")), HasSubstr("has no container named 'tensorflow'"));
  EXPECT_THAT(
      MistakesOf("{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, spec: {}}"),
      HasSubstr("the TFJob's spec lacks 'tfReplicaSpecs'"));
  EXPECT_THAT(MistakesOf(absl::StrReplaceAll(Small(), {{"name: a", "name: 1a"}})),
              HasSubstr("begins with a digit"));
  EXPECT_THAT(
      MistakesOf(absl::StrReplaceAll(Small(), {{"name: a", "name: " + std::string(60, 'a')}})),
      HasSubstr("has 69 characters; expected 63 at most: give the job a shorter name"));
  EXPECT_THAT(
      MistakesOf(Small("", "", "{name: tensorflow, image: tf, resources: {limits: {cpu: x}}}")),
      HasSubstr("the limit 'cpu' in the template of 'Worker' must be a quantity"));
}

TEST(TfJobFormatTest, V1RejectsUnknownAndDuplicateRoles) {
  const auto with = [](const std::string& role) {
    return absl::StrReplaceAll(
        Small(), {{"Worker: {", absl::StrCat(role,
                                             ": {template: {spec: {containers: [{name: tensorflow, "
                                             "image: tf}]}}}, Worker: {")}});
  };
  EXPECT_EQ(MistakesOf(with("CHIEF")), "");
  EXPECT_THAT(
      MistakesOf(with("Wroker")),
      HasSubstr("unknown role 'Wroker' in tfReplicaSpecs; expected one of: Chief, Master, PS, "
                "Worker, Evaluator (did you mean 'Worker'?)"));
  EXPECT_THAT(MistakesOf(with("worker")), HasSubstr("appears twice, in different case"));
  const std::string both = absl::StrReplaceAll(with("Chief"), {{"Worker", "Master"}});
  EXPECT_THAT(MistakesOf(both), HasSubstr("roles 'chief' and 'master' both lead the job"));
}

TEST(TfJobFormatTest, OtherObjectsInTheFileAreLeftAlone) {
  const std::string config = "apiVersion: v1\nkind: ConfigMap\ndata: {anything: goes}\n---\n";
  EXPECT_EQ(MustParse(config + kV1).name, "dist-mnist");
  EXPECT_THAT(MistakesOf(absl::StrCat(kV1, "---\n", kV1)),
              HasSubstr("a second TFJob; the first is at line 1"));
  EXPECT_THAT(
      MistakesOf("apiVersion: batch/v1\nkind: Job\n"),
      HasSubstr("job.yaml:1:1: kind 'Job' of apiVersion 'batch/v1' is not supported; expected one "
                "of: TFJob of kubeflow.org/v1, TFJob of kubeflow.org/v1beta2, "));
}

std::string Annotated(const std::string& annotations) {
  return absl::StrReplaceAll(
      Small(), {{"metadata: {name: a}",
                 absl::StrCat("metadata: {name: a, annotations: {", annotations, "}}")}});
}

TEST(TfJobFormatTest, PoliciesInAnnotations) {
  const JobSpec job = MustParse(Annotated(
      "muster/restart-scope: job, muster/start-order: 'Worker', muster/update: rolling, other: x"));
  EXPECT_EQ(job.policies.restart_scope, RestartScope::kJob);
  EXPECT_EQ(job.kubernetes["startOrder"], Json::array({"worker"}));
  EXPECT_EQ(job.kubernetes["update"], "rolling");
  EXPECT_THAT(MistakesOf(Annotated("muster/restart-scope: jobs")),
              HasSubstr("'muster/restart-scope' of the annotations must be task | job"));
  EXPECT_THAT(MistakesOf(Annotated("muster/update: roll")),
              HasSubstr("'muster/update' of the annotations must be recreate | rolling | never"));
  EXPECT_THAT(MistakesOf(Annotated("muster/start-order: 'worker,ps'")),
              HasSubstr("'muster/start-order' names 'ps', which is not a role of the job"));
  EXPECT_THAT(MistakesOf(Annotated("muster/start-order: 'worker,worker'")),
              HasSubstr("names 'worker' twice"));
  EXPECT_THAT(MistakesOf(Annotated("muster/restart-scop: job")),
              HasSubstr("unknown annotation 'muster/restart-scop' (did you mean "
                        "'muster/restart-scope'?)"));
  EXPECT_EQ(MistakesOf(Annotated("muster/of-another-program: x")), "");
}

constexpr char kV1Alpha1[] = R"(apiVersion: tensorflow.org/v1alpha1
kind: TfJob
metadata: {name: distributed-mnist}
spec:
  RuntimeId: 5oz2
  tfImage: tf:1
  tensorboard: {logDir: /logs, serviceType: LoadBalancer}
  terminationPolicy: {chief: {replicaName: MASTER, replicaIndex: 0}}
  replicaSpecs:
    - template: {spec: {containers: [{name: tensorflow, image: master:1, command: [python, a.py]}]}}
    - {tfReplicaType: WORKER, replicas: 2, tfPort: 2300,
       template: {spec: {containers: [{name: tensorflow, image: worker:1}]}}}
    - {tfReplicaType: PS, IsDefaultPS: true}
)";

TEST(TfJobFormatTest, V1Alpha1) {
  const JobSpec job = MustParse(kV1Alpha1);
  EXPECT_EQ(job.format, JobFormat::kTfJobV1Alpha1);
  EXPECT_EQ(job.name, "distributed-mnist");
  const std::vector<cluster::TaskId> tasks = {
      {"master", 0}, {"worker", 0}, {"worker", 1}, {"ps", 0}};
  EXPECT_EQ(job.Tasks(), tasks);
  EXPECT_EQ(job.roles[0].command, (std::vector<std::string>{"python", "a.py"}));
  EXPECT_EQ(job.roles[0].restart, RestartPolicy::kExitCode);
  EXPECT_EQ(job.roles[0].port, 2222);
  EXPECT_EQ(job.roles[1].port, 2300);
  EXPECT_TRUE(job.roles[2].command.empty());
  EXPECT_TRUE(job.roles[2].pod.is_null());
  EXPECT_EQ(job.roles[2].server, Server::kTensorFlow);
  EXPECT_EQ(job.roles[2].image, "tf:1");
  EXPECT_EQ(job.kubernetes["runtimeId"], "5oz2");
  EXPECT_EQ(job.kubernetes["tensorboard"]["logDir"], "/logs");
}

TEST(TfJobFormatTest, V1Alpha1KeysInAnySpelling) {
  const std::string text = absl::StrReplaceAll(
      kV1Alpha1, {{"replicaSpecs", "ReplicaSpecs"}, {"tfReplicaType", "TfReplicaType"}});
  EXPECT_TRUE(MustParse(text) == MustParse(kV1Alpha1));
  const std::string snake =
      absl::StrReplaceAll(kV1Alpha1, {{"tensorflow.org/v1alpha1", "mlkube.io/v1beta1"},
                                      {"RuntimeId", "runtime_id"},
                                      {"tfImage", "tf_image"},
                                      {"replicaSpecs", "replica_specs"},
                                      {"tfReplicaType", "tf_replica_type"},
                                      {"tfPort", "tf_port"},
                                      {"IsDefaultPS", "is_default_ps"},
                                      {"logDir", "log_dir"},
                                      {"serviceType", "service_type"},
                                      {"terminationPolicy", "termination_policy"},
                                      {"replicaName", "replica_name"},
                                      {"replicaIndex", "replica_index"}});
  EXPECT_TRUE(MustParse(snake) == MustParse(kV1Alpha1));
  EXPECT_THAT(MistakesOf(absl::StrReplaceAll(kV1Alpha1, {{"tfImage", "runtime_id"}})),
              HasSubstr("the key 'runtimeId' appears twice, in different spellings"));
}

TEST(TfJobFormatTest, V1Alpha1OfKubeflow) {
  const std::string text =
      absl::StrReplaceAll(kV1Alpha1, {{"tensorflow.org/v1alpha1", "kubeflow.org/v1alpha1"},
                                      {"kind: TfJob", "kind: TFJob"},
                                      {"tfImage: tf:1",
                                       "cleanupPodPolicy: All\n  "
                                       "schedulerName: kube-batch"}});
  const JobSpec job = MustParse(text);
  EXPECT_EQ(job.format, JobFormat::kTfJobV1Alpha1);
  EXPECT_EQ(job.kubernetes["runPolicy"]["cleanPodPolicy"], "All");
  EXPECT_EQ(job.roles[0].pod["spec"]["schedulerName"], "kube-batch");
  EXPECT_EQ(job.roles[2].kubernetes["pod"]["schedulerName"], "kube-batch");
  EXPECT_EQ(job.roles[2].image, "tensorflow/tensorflow:1.3.0");
}

TEST(TfJobFormatTest, ADefaultPsServesTheProgramsOfTheJob) {
  const auto ps = [](absl::string_view from, absl::string_view to) {
    return MustParse(absl::StrReplaceAll(kV1Alpha1, {{from, to}})).roles[2];
  };
  // The stored form of a default PS: its template mounts the server and has no command.
  const char kStored[] =
      "template: {spec: {containers: [{name: tensorflow, image: 'stored:1', volumeMounts: [{name: "
      "ps-config-volume, mountPath: /ps-server}]}]}}";
  for (const char* flag : {"IsDefaultPS: true, ", ""}) {
    const RoleSpec stored = ps("IsDefaultPS: true", absl::StrCat(flag, kStored));
    EXPECT_EQ(stored.server, Server::kTensorFlow) << flag;
    EXPECT_EQ(stored.image, "stored:1") << flag;
    EXPECT_FALSE(stored.pod.is_null()) << flag;
  }
  const RoleSpec own =
      ps("IsDefaultPS: true",
         "template: {spec: {containers: [{name: tensorflow, image: own, command: [serve]}]}}");
  EXPECT_EQ(own.server, Server::kNone);
  EXPECT_EQ(own.command, std::vector<std::string>{"serve"});
  // The built-in trainer has a protocol, and therefore a server, of its own.
  for (const auto& [from, to] :
       {std::pair("master:1", "'r/muster-trainer:9'"),
        std::pair("image: master:1, command: [python, a.py]",
                  "image: 'r/muster-trainer:9', command: [/usr/bin/muster-trainer]")}) {
    const JobSpec job = MustParse(absl::StrReplaceAll(
        kV1Alpha1, {{from, to}, {"command: [python, a.py]", "args: [--model_dir=/m]"}}));
    EXPECT_EQ(job.roles[2].server, Server::kNone) << to;
    EXPECT_EQ(job.roles[2].image, "r/muster-trainer:9") << to;
  }
}

constexpr char kBeta[] = R"(apiVersion: kubeflow.org/v1beta2
kind: TFJob
metadata: {name: a}
spec:
  activeDeadlineSeconds: 60
  backoffLimit: 2
  ttlSecondsAfterFinished: 5
  tfReplicaSpecs:
    Worker: {template: {spec: {containers: [{name: tensorflow, image: tf, command: [x]}]}}}
)";

TEST(TfJobFormatTest, V1BetaHasPoliciesInItsSpec) {
  for (const char* version : {"v1beta2", "v1beta1", "v1alpha2"}) {
    const JobSpec job = MustParse(absl::StrReplaceAll(kBeta, {{"v1beta2", version}}));
    EXPECT_EQ(job.format, JobFormat::kTfJobV1);
    EXPECT_EQ(job.policies.deadline, absl::Minutes(1));
    EXPECT_EQ(job.policies.max_restarts, 2);
    EXPECT_EQ(job.kubernetes["runPolicy"]["ttlSecondsAfterFinished"], 5);
    EXPECT_EQ(job.kubernetes["runPolicy"]["cleanPodPolicy"], "Running");
  }
  EXPECT_EQ(MustParse(absl::StrReplaceAll(kBeta, {{"AfterFinished", "AfterFinishing"}}))
                .kubernetes["runPolicy"]["ttlSecondsAfterFinished"],
            5);
  EXPECT_EQ(MustParse(absl::StrReplaceAll(kBeta, {{"backoffLimit: 2", "cleanPodPolicy: None"}}))
                .kubernetes["runPolicy"]["cleanPodPolicy"],
            "None");
  EXPECT_THAT(MistakesOf(absl::StrReplaceAll(kBeta, {{"backoffLimit: 2", "backoffLimit: -1"}})),
              HasSubstr("job.yaml:6:17: 'backoffLimit' of runPolicy must be"));
  EXPECT_THAT(MistakesOf(absl::StrReplaceAll(kBeta, {{"v1beta2", "v1"}})),
              HasSubstr("unknown key 'backoffLimit'"));
}

TEST(TfJobFormatTest, OldFieldsInAnnotations) {
  const JobSpec job = MustParse(absl::StrReplaceAll(
      Annotated("muster/chief: 'worker:1', muster/runtime-id: 5oz2, muster/tensorboard: "
                "'{\"logDir\": \"/logs\", \"image\": \"tb:1\"}'"),
      {{"Worker: {", "Worker: {replicas: 2, "}}));
  EXPECT_EQ(ChiefTask(job), (cluster::TaskId{"worker", 1}));
  EXPECT_EQ(job.kubernetes["runtimeId"], "5oz2");
  EXPECT_EQ(job.kubernetes["tensorboard"]["image"], "tb:1");
  EXPECT_THAT(MistakesOf(Annotated("muster/chief: 'worker:9'")),
              HasSubstr("the chief is worker:9, which is not a task of the job"));
  EXPECT_THAT(MistakesOf(Annotated("muster/chief: 'x:y'")),
              HasSubstr("the annotation muster/chief: "));
  EXPECT_THAT(MistakesOf(Annotated("muster/tensorboard: '{'")),
              HasSubstr("the annotation muster/tensorboard is not valid JSON"));
  EXPECT_THAT(MistakesOf(Annotated("muster/tensorboard: '{}'")),
              HasSubstr("tensorboard lacks 'logDir'"));
}

TEST(TfJobFormatTest, ArgumentsAloneAreForTheEntryPointOfTheImage) {
  const auto role = [](const char* container) {
    return MustParse(absl::StrReplaceAll(kBeta, {{"image: tf, command: [x]", container}})).roles[0];
  };
  EXPECT_TRUE(HasEntryPoint(role("image: tf, args: [train.py]")));
  EXPECT_TRUE(HasEntryPoint(role("image: tf")));
  EXPECT_EQ(role("image: tf, command: [a], args: [b]").command,
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(role("image: muster-trainer, args: [b]").command,
            (std::vector<std::string>{"muster-trainer", "b"}));
}

TEST(TfJobFormatTest, V1Alpha1TerminationPolicySelectsTheChief) {
  EXPECT_EQ(MustParse(kV1Alpha1).policies.chief, std::nullopt);
  const JobSpec job = MustParse(absl::StrReplaceAll(
      kV1Alpha1,
      {{"replicaName: MASTER, replicaIndex: 0", "replicaName: WORKER, replicaIndex: 1"}}));
  EXPECT_EQ(ChiefTask(job), (cluster::TaskId{"worker", 1}));
  const auto stored = JobSpecFromJson(JobSpecToJson(job));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(*stored == job);
}

TEST(TfJobFormatTest, V1Alpha1Rejections) {
  const auto replaced = [](absl::string_view from, absl::string_view to) {
    return MistakesOf(absl::StrReplaceAll(kV1Alpha1, {{from, to}}));
  };
  EXPECT_THAT(replaced("IsDefaultPS: true", "IsDefaultPS: false"),
              HasSubstr("job.yaml:13:7: the PS lacks 'template'"));
  EXPECT_THAT(replaced("tfReplicaType: PS", "tfReplicaType: SP"),
              HasSubstr("must be MASTER | WORKER | PS, not text 'SP' (did you mean 'PS'?)"));
  EXPECT_THAT(replaced("logDir: /logs, ", ""), HasSubstr("tensorboard lacks 'logDir'"));
  EXPECT_THAT(replaced("replicaIndex: 0", "replicaIndex: 1"),
              HasSubstr("the chief is master:1, which is not a task of the job"));
  EXPECT_THAT(replaced("RuntimeId: 5oz2", "RuntimeId: A-b"),
              HasSubstr("the RuntimeId 'A-b' is not valid; expected at most 10"));
  EXPECT_THAT(replaced("LoadBalancer", "Balancer"),
              HasSubstr("must be ClusterIP | NodePort | LoadBalancer, not text 'Balancer'"));
  EXPECT_THAT(replaced("logDir: /logs", "logDir: /logs, volumes: {name: a}"),
              HasSubstr("'volumes' of tensorboard must be a list"));
  EXPECT_THAT(replaced("tfReplicaType: WORKER", "tfReplicaType: MASTER"),
              HasSubstr("a second entry of replicaSpecs for MASTER"));
}

}  // namespace
}  // namespace muster::job
