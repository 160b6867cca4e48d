#include "job/format/overrides.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "job/format/override_path.h"
#include "job/format/parse.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTrains[] = R"(# a comment
name: mnist
roles: {chief: {}, worker: 2, ps: {replicas: 1}}
train: {model: mlp, steps: 2000, data: {format: synthetic}}
)";
constexpr char kRuns[] = R"(
name: own
env: {A: file}
roles:
  worker: {replicas: 2, command: python train.py, env: {A: role, VERSION: 1.10}}
  ps: {command: [python, ps.py]}
)";
constexpr char kTfJob[] = R"(
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: manifest}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: tensorflow
              image: a:1
              command: [python]
              args: [train.py]
              env: [{name: A, value: file}]
            - {name: sidecar, image: b}
)";
constexpr char kRendered[] = R"(
resources:
  - {type: tensorflow-cluster, properties: {image: i, jobs: [{name: worker, num_tasks: 2}]}}
)";

struct Result {
  absl::StatusOr<JobSpec> spec;
  std::string effective;
  std::vector<std::string> warnings;
};

Result Read(absl::string_view text, Overrides overrides) {
  Result result;
  ParseJobOptions options = TestOptions();
  options.overrides = std::move(overrides);
  options.effective = &result.effective;
  options.warnings = &result.warnings;
  result.spec = ParseJob(text, options);
  return result;
}

JobSpec MustRead(absl::string_view text, const Overrides& overrides) {
  Result result = Read(text, overrides);
  EXPECT_TRUE(result.spec.ok()) << result.spec.status();
  if (!result.spec.ok()) return {};
  // The effective file alone describes the same job.
  EXPECT_EQ(MustParse(result.effective), *result.spec) << result.effective;
  return *result.spec;
}

std::string Mistakes(absl::string_view text, const Overrides& overrides) {
  return std::string(Read(text, overrides).spec.status().message());
}

TEST(OverridesTest, SetsValuesOfAnyKind) {
  const JobSpec job =
      MustRead(kTrains, {.set = {"train.steps=100", "roles.worker.replicas=4", "roles.evaluator={}",
                                 "train.optimizer.learning_rate=1e-3", "policies.deadline=2h",
                                 "train.metrics=[accuracy, loss]", "env.TEXT='a: b'"}});
  EXPECT_EQ(job.train["steps"], 100);
  EXPECT_EQ(job.FindRole("worker")->replicas, 4);
  EXPECT_NE(job.FindRole("evaluator"), nullptr);
  EXPECT_EQ(job.train["optimizer"]["learning_rate"], 1e-3);
  EXPECT_EQ(job.policies.deadline, absl::Hours(2));
  EXPECT_EQ(job.train["metrics"].size(), 2u);
  EXPECT_EQ(job.env.at("TEXT"), "a: b");
}

TEST(OverridesTest, WithoutOverridesTheTextIsTheEffectiveFile) {
  EXPECT_EQ(Read(kTrains, {}).effective, kTrains);
  EXPECT_EQ(Read(kTrains, {.set = {"train.steps=5"}}).effective.find('#'), std::string::npos);
}

TEST(OverridesTest, MistakesAreLocatedByTheOptionAndReportedTogether) {
  EXPECT_EQ(Mistakes(kTrains, {.set = {"train.steps=0", "trian.steps=1"}}),
            "--set train.steps: 'steps' of train must be a whole number from 1 to "
            "1000000000000000, not the number 0\n"
            "--set trian.steps: unknown key 'trian' in the job (did you mean 'train'?)");
  const std::string mixed = Mistakes("name: a\nrols: 1\n", {.set = {"roles.worker.replicas=x"}});
  EXPECT_THAT(mixed, HasSubstr("job.yaml:2:1: unknown key 'rols'"));
  EXPECT_THAT(mixed, HasSubstr("--set roles.worker.replicas: 'replicas' of role 'worker' must be"));
}

TEST(OverridesTest, ReportsMalformedOptions) {
  EXPECT_THAT(Mistakes(kTrains, {.set = {"train.steps"}}),
              HasSubstr("--set train.steps: expected PATH=VALUE"));
  for (const char* path : {"", ".", "a..b", "a[", "a[x]", "a[0]b", "[0]"}) {
    EXPECT_THAT(Mistakes(kTrains, {.set = {absl::StrCat(path, "=1")}}), HasSubstr("not a path"))
        << path;
  }
  EXPECT_THAT(Mistakes(kTrains, {.set = {"train.model=[a"}}),
              HasSubstr("--set train.model: cannot read the value '[a': "));
  EXPECT_THAT(Mistakes(kTrains, {.set = {"train.steps.x=1"}}),
              HasSubstr("'train.steps' is the number 2000, not a map, in the file"));
  EXPECT_THAT(Mistakes(kRuns, {.set = {"roles.ps.command[7]=x"}}),
              HasSubstr("'roles.ps.command' has 2 items in the file; the next index is 2"));
  EXPECT_THAT(Mistakes(kTrains, {.env = {"KEY"}}), HasSubstr("--env KEY: expected KEY=VALUE"));
  EXPECT_THAT(Mistakes(kTrains, {.env = {"1 x=2"}}), HasSubstr("--env 1 x: "));
  EXPECT_THAT(Mistakes(kTrains, {.name = "No"}), HasSubstr("--name: "));
}

TEST(OverridesTest, EnvReachesEveryTask) {
  const JobSpec job = MustRead(kRuns, {.env = {"A=x=y", "B=5"}});
  EXPECT_EQ(job.env.at("A"), "x=y");
  EXPECT_EQ(job.env.at("B"), "5");
  EXPECT_EQ(job.FindRole("worker")->env.at("A"), "x=y") << "else the role's own value would win";
  EXPECT_EQ(job.FindRole("worker")->env.at("VERSION"), "1.10") << "others stay as written";
  EXPECT_TRUE(job.FindRole("ps")->env.empty());
}

TEST(OverridesTest, NamesTheJob) {
  EXPECT_EQ(MustRead(kTrains, {.name = "other"}).name, "other");
  EXPECT_EQ(MustRead(kTfJob, {.name = "other"}).name, "other");
}

TEST(OverridesTest, ArgumentsGoToCommands) {
  const JobSpec job = MustRead(kRuns, {.arguments = {"--lr", "a b", "$x"}});
  EXPECT_THAT(job.FindRole("worker")->command,
              ElementsAre("/bin/sh", "-c", "python train.py --lr 'a b' '$x'"));
  EXPECT_THAT(job.FindRole("ps")->command, ElementsAre("python", "ps.py", "--lr", "a b", "$x"));
  EXPECT_THAT(Mistakes(kTrains, {.arguments = {"x"}}),
              HasSubstr("arguments after --: the tasks of this job run the built-in trainer"));
}

TEST(OverridesTest, ArgumentsNeedOneSimpleCommand) {
  for (const char* line : {"a | b", "a && b", "a; b", "a &", "(a)", "a # b"}) {
    const std::string text = absl::StrCat("name: a\nroles: {worker: {command: \"", line, "\"}}\n");
    EXPECT_THAT(Mistakes(text, {.arguments = {"x"}}),
                HasSubstr("which is more than one simple command"))
        << line;
  }
  for (const char* line : {"a '|' \"&\"", "a $(b)", "a\\;b", "a#b", "a > log"}) {
    const std::string text =
        absl::StrCat("name: a\nroles:\n  worker:\n    command: |\n      ", line, "\n");
    EXPECT_THAT(MustRead(text, {.arguments = {"x"}}).roles[0].command,
                ElementsAre("/bin/sh", "-c", absl::StrCat(line, " x")));
  }
  EXPECT_THAT(Mistakes("name: a\nroles:\n  worker:\n    command: |\n      a\n      b\n",
                       {.arguments = {"x"}}),
              HasSubstr("which is more than one simple command"));
}

TEST(OverridesTest, ManifestsKeepTheirOtherParts) {
  const JobSpec job =
      MustRead(kTfJob, {.set = {"spec.tfReplicaSpecs.Worker.replicas=3",
                                "spec.tfReplicaSpecs.Worker.template.spec.containers[0].image=a:2",
                                "metadata.labels.example\\.com/team=x"},
                        .env = {"A=new", "B=b"},
                        .arguments = {"--x"}});
  const RoleSpec& worker = job.roles[0];
  EXPECT_EQ(worker.replicas, 3);
  EXPECT_EQ(worker.image, "a:2");
  EXPECT_EQ(worker.env, (std::map<std::string, std::string>{{"A", "new"}, {"B", "b"}}));
  EXPECT_THAT(worker.command, ElementsAre("python", "train.py", "--x"));
  EXPECT_EQ(job.kubernetes["labels"]["example.com/team"], "x");
  EXPECT_THAT(Read(kTfJob, {.name = "n"}).effective, HasSubstr("kind: ConfigMap"));
  EXPECT_THAT(Mistakes(kTfJob, {.env = {"=x"}}), HasSubstr("--env "));
}

TEST(OverridesTest, ADefaultServerIsNotReachedAndThatIsSaid) {
  const Result result = Read(R"(
apiVersion: tensorflow.org/v1alpha1
kind: TfJob
metadata: {name: a}
spec:
  replicaSpecs:
    - {tfReplicaType: PS}
    - tfReplicaType: MASTER
      template: {spec: {containers: [{name: tensorflow, image: i}]}}
)",
                             {.env = {"A=x"}});
  ASSERT_TRUE(result.spec.ok()) << result.spec.status();
  EXPECT_EQ(result.spec->FindRole("master")->env.at("A"), "x");
  EXPECT_THAT(result.warnings,
              ElementsAre("--env A: 'PS' has no template, so this does not reach it"));
}

TEST(OverridesTest, ARenderedClusterHasValuesOnly) {
  const JobSpec job =
      MustRead(kRendered, {.set = {"resources[0].properties.jobs[0].num_tasks=3",
                                   "resources[0].properties.jobs[1]={name: ps, num_tasks: 1}"}});
  EXPECT_EQ(job.FindRole("worker")->replicas, 3);
  EXPECT_EQ(job.FindRole("ps")->replicas, 1);
  for (const Overrides& one :
       {Overrides{.env = {"A=b"}}, Overrides{.name = "x"}, Overrides{.arguments = {"x"}}}) {
    EXPECT_THAT(Mistakes(kRendered, one), HasSubstr(absl::StrCat(one.Names()[0], ": the ")));
  }
}

TEST(OverridesTest, NamesHaveNoValues) {
  const Overrides all{.set = {"a.b=1"}, .env = {"TOKEN=secret"}, .name = "n", .arguments = {"x"}};
  EXPECT_THAT(all.Names(), ElementsAre("--set a.b", "--env TOKEN", "--name", "arguments after --"));
  EXPECT_TRUE(Overrides{}.empty());
  EXPECT_FALSE(all.empty());
}

TEST(OverridePathTest, CreatesWhatIsAbsentOnlyIfThePathFits) {
  codec::Node root{.kind = codec::Node::Kind::kMap};
  ASSERT_TRUE(FindOrCreate(*ParsePath("a.b[0].c"), {5, 1}, root).ok());
  EXPECT_EQ(codec::ToJson(root).dump(), R"({"a":{"b":[{"c":null}]}})");
  EXPECT_FALSE(FindOrCreate(*ParsePath("a.x.y[1]"), {5, 1}, root).ok());
  EXPECT_EQ(root.Find("a")->Find("x"), nullptr);
}

}  // namespace
}  // namespace muster::job
