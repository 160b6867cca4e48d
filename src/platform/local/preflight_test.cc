#include "platform/local/preflight.h"

#include <filesystem>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "job/format/parse.h"

namespace muster::local {
namespace {

using testing::HasSubstr;
using testing::Not;

class PreflightTest : public testing::Test {
 protected:
  std::vector<platform::Finding> Check(const std::string& text) {
    submission_ = {.id = "j-x7k2q",
                   .source_name = "job.yaml",
                   .source = text,
                   .working_dir = folder_.path(),
                   .trainer = "/bin/true"};
    auto spec = job::ParseJob(text, {.file_name = "job.yaml", .working_dir = folder_.path()});
    EXPECT_TRUE(spec.ok()) << spec.status();
    submission_.spec = *std::move(spec);
    auto findings = CheckJob(supervise::JobDir::Of(folder_.path(), submission_.id), submission_,
                             /*thorough=*/false);
    EXPECT_TRUE(findings.ok()) << findings.status();
    return *std::move(findings);
  }
  // Returns the error of `muster run`, or "" if it would start the job.
  std::string Refusal(const std::string& text) {
    return std::string(platform::FatalFindings(Check(text), submission_).message());
  }
  platform::Finding Of(const std::string& text, const std::string& subject) {
    for (const platform::Finding& finding : Check(text)) {
      if (finding.subject == subject) return finding;
    }
    ADD_FAILURE() << "no finding of " << subject;
    return {};
  }
  void Write(const std::string& name) {
    const std::string path = base::JoinPath(folder_.path(), name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    ASSERT_TRUE(base::WriteFileAtomically(path, "x").ok());
  }

  base::TempDir folder_;
  job::Submission submission_;
};

TEST_F(PreflightTest, ReportsAMissingDirectory) {
  const std::string job = "name: j\nroles:\n  worker: {command: 'true', working_dir: nowhere}\n";
  EXPECT_THAT(Refusal(job), HasSubstr("job.yaml:3:42: directory of worker: "));
  std::filesystem::create_directories(base::JoinPath(folder_.path(), "nowhere"));
  EXPECT_EQ(Refusal(job), "");
}

TEST_F(PreflightTest, ReportsAMissingProgram) {
  EXPECT_THAT(Refusal("name: j\ncommand: [no-such, x]\nroles: {worker: {}}\n"),
              HasSubstr("job.yaml:2:10: program of worker: "));
  EXPECT_THAT(Refusal("{name: j, roles: {worker: {command: no-such x}}}"), HasSubstr("no-such"));
  // The line succeeds even if its first command fails.
  const std::string goes_on = "{name: j, roles: {worker: {command: 'no-such x; true'}}}";
  EXPECT_EQ(Refusal(goes_on), "");
  EXPECT_EQ(Of(goes_on, "program of worker").grade, platform::Grade::kMissing);
}

TEST_F(PreflightTest, ReportsAMissingScript) {
  const std::string job = "name: j\nroles:\n  worker:\n    command: [sh, train.sh, --lr=1]\n";
  EXPECT_THAT(Refusal(job), HasSubstr("job.yaml:4:14: script of worker: "));
  EXPECT_THAT(Refusal(job), HasSubstr("train.sh does not exist"));
  EXPECT_THAT(Refusal("{name: j, roles: {worker: {command: 'exec sh -eux src/a.sh > log'}}}"),
              HasSubstr("src/a.sh does not exist"));
  // The script may appear between restarts.
  EXPECT_EQ(Refusal("{name: j, roles: {worker: {restart: on-failure, command: [sh, a.sh]}}}"), "");
  Write("train.sh");
  EXPECT_EQ(Refusal(job), "");
}

TEST_F(PreflightTest, ReportsMissingDataAndModel) {
  const std::string job =
      "name: j\nroles: {worker: 1}\ntrain:\n  model: nets/m.pt\n  steps: 1\n"
      "  data: {format: mnist, path: data/mnist}\n";
  EXPECT_THAT(Refusal(job), HasSubstr("job.yaml:4:10: model: "));
  EXPECT_THAT(Refusal(job), HasSubstr("job.yaml:6:31: data: "));
  EXPECT_THAT(Refusal(job), HasSubstr("muster data fetch mnist --to "));
  Write("nets/m.pt");
  Write("data/mnist/x");
  EXPECT_EQ(Refusal(job), "");
}

TEST_F(PreflightTest, WarnsOfDataThatAnotherTaskMayCreate) {
  const std::string job =
      "{name: j, roles: {worker: {}, extra: {command: 'true'}}, train: {model: mlp, steps: 1, "
      "data: {format: mnist, path: data/mnist}}}";
  EXPECT_EQ(Refusal(job), "");
  EXPECT_EQ(Of(job, "data").grade, platform::Grade::kWarning);
}

TEST_F(PreflightTest, DoesNotCheckRemoteFiles) {
  EXPECT_EQ(Refusal("{name: j, roles: {worker: 1}, train: {model: mlp, steps: 1, "
                    "data: {format: mnist, path: 'gs://bucket/mnist'}}}"),
            "");
}

TEST_F(PreflightTest, ReportsMissingGpus) {
  EXPECT_THAT(Refusal("name: j\nroles:\n  worker:\n    replicas: 512\n    command: 'true'\n"
                      "    resources: {gpus: 1000}\n"),
              HasSubstr("job.yaml:6:16: gpus: "));
}

TEST_F(PreflightTest, ReportsNoPositionForMergedFiles) {
  const auto findings = Check("{name: j, roles: {worker: {command: [no-such]}}}");
  submission_.source_name = "a.yaml + b.yaml";
  const auto again = CheckJob(supervise::JobDir::Of(folder_.path(), submission_.id), submission_,
                              /*thorough=*/false);
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(std::string(platform::FatalFindings(*again, submission_).message()),
              HasSubstr("a.yaml + b.yaml: program of worker: "));
}

TEST(ScriptTest, IsFoundInPlainCommands) {
  EXPECT_EQ(ScriptOf({"python", "train.py", "x"}), "train.py");
  EXPECT_EQ(ScriptOf({"/usr/bin/python3.11", "-uB", "train.py"}), "train.py");
  EXPECT_EQ(ScriptOf({"bash", "-eux", "run.sh"}), "run.sh");
  EXPECT_EQ(ScriptOf({"node", "main.js"}), "main.js");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"python"},
                                             {"python", "-m", "train"},
                                             {"python", "-c", "print()"},
                                             {"python", "-W", "ignore", "train.py"},
                                             {"python", "-"},
                                             {"bash", "-c", "x"},
                                             {"perl", "-I", "lib", "x.pl"},
                                             {"pythonic", "train.py"},
                                             {"train.py"}}) {
    EXPECT_EQ(ScriptOf(words), "") << testing::PrintToString(words);
  }
}

TEST(GpuTest, AreCountedByTheirFiles) {
  const base::TempDir root;
  const auto make = [&](const std::string& name, const std::string& text) {
    const std::string path = base::JoinPath(root.path(), name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    ASSERT_TRUE(base::WriteFileAtomically(path, text).ok());
  };
  EXPECT_EQ(CountGpus(root.path()), 0);
  make("dev/nvidiactl", "");
  make("dev/nvidia0", "");
  make("dev/nvidia12", "");
  EXPECT_EQ(CountGpus(root.path()), 2);
  make("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
  make("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n");
  EXPECT_EQ(CountGpus(root.path()), 3);
  const base::TempDir windows;
  std::filesystem::create_directories(base::JoinPath(windows.path(), "dev/dxg"));
  EXPECT_EQ(CountGpus(windows.path()), std::nullopt);
}

}  // namespace
}  // namespace muster::local
