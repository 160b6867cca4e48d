#include "platform/kubernetes/work_files.h"

#include <string>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WorkFiles : public ::testing::Test {
 protected:
  WorkFiles() {
    submission_.working_dir = root_.path();
    submission_.spec.roles = {{.name = "worker", .command = {"python", "train.py"}},
                              {.name = "ps", .command = {"serve"}},
                              {.name = "evaluator"}};
    Put("train.py", "print(1)\n");
  }

  void Put(const std::string& name, const std::string& content) {
    const std::string path = base::JoinPath(root_.path(), name);
    ASSERT_TRUE(base::MakeDirectories(base::FolderOf(path)).ok());
    ASSERT_TRUE(base::ReplaceFile(path, content).ok());
  }

  absl::StatusOr<PackedFiles> Pack() const {
    return PackFiles(submission_, SelectFiles(submission_).roles, {});
  }
  std::string OnlyLimit() const {
    const SelectedFiles selected = SelectFiles(submission_);
    EXPECT_THAT(selected.roles, IsEmpty());
    return selected.limits.size() == 1 ? selected.limits[0].what : "";
  }

  const base::TempDir root_;
  job::Submission submission_;
};

TEST_F(WorkFiles, RolesWhoseCommandsNameAFile) {
  const SelectedFiles selected = SelectFiles(submission_);
  EXPECT_THAT(selected.roles, ElementsAre("worker"));
  EXPECT_THAT(selected.limits, IsEmpty());
  submission_.spec.roles[0].command = {"python", "/app/train.py"};
  EXPECT_THAT(SelectFiles(submission_).roles, IsEmpty());
  EXPECT_THAT(Pack().value().parts, IsEmpty());
}

TEST_F(WorkFiles, AFileThatIsNotSentIsReported) {
  submission_.spec.roles[0].working_dir = "/app";
  EXPECT_THAT(OnlyLimit(), AllOf(HasSubstr("role 'worker'"), HasSubstr("train.py: not sent"),
                                 HasSubstr("working_dir, /app")));
  submission_.spec.roles[0].working_dir = "";
  submission_.spec.roles[0].kubernetes = {{"container", {{"workingDir", "/app"}}}};
  EXPECT_THAT(OnlyLimit(), HasSubstr("'workingDir', a folder of the image"));
  submission_.spec.roles[0].kubernetes = nullptr;
  submission_.spec.format = job::JobFormat::kTfJobV1;
  EXPECT_THAT(OnlyLimit(), HasSubstr("a manifest describes its pods"));
  submission_.spec.format = job::JobFormat::kNative;
  submission_.spec.roles[0].command[1] = base::JoinPath(root_.path(), "train.py");
  EXPECT_THAT(OnlyLimit(), HasSubstr("a path of this machine"));
}

TEST_F(WorkFiles, TheArchiveIsNamedByItsContent) {
  const PackedFiles first = Pack().value();
  EXPECT_EQ(first.files, 1);
  EXPECT_EQ(first.sent.parts, 1);
  EXPECT_THAT(first.sent.roles, ElementsAre("worker"));
  EXPECT_EQ(first.Describe("/w"), "1 file (9B) of /w to worker");
  EXPECT_EQ(Pack().value().parts, first.parts);
  Put("train.py", "print(2)\n");
  EXPECT_NE(Pack().value().sent.digest, first.sent.digest);
}

TEST_F(WorkFiles, LargeArchivesHaveSeveralParts) {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < (5U << 20); ++i) {
    x = x * 1664525 + 1013904223;
    noise.push_back(static_cast<char>(x >> 24));
  }
  Put("noise", noise);
  const PackedFiles packed = Pack().value();
  EXPECT_GT(packed.parts.size(), 1U);
  EXPECT_EQ(packed.sent.parts, static_cast<int>(packed.parts.size()));
  for (const std::string& part : packed.parts) EXPECT_LT(part.size(), 1U << 20);
}

TEST_F(WorkFiles, ALargeDirectoryIsRefusedWithTheRemedies) {
  Put("data/big.bin", std::string(9 << 20, 'x'));
  const absl::Status refused = Pack().status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("data/big.bin"), HasSubstr(".gitignore"), HasSubstr("build an image")));
  Put(".gitignore", "data\n");
  EXPECT_TRUE(Pack().ok());
}

TEST_F(WorkFiles, ANamedFileThatIsIgnoredIsReported) {
  submission_.spec.roles[0].command = {"python", "train.py", "x.csv"};
  Put("x.csv", "1");
  Put(".gitignore", "*.csv\n");
  const PackedFiles packed = Pack().value();
  EXPECT_THAT(packed.left_out, ElementsAre("x.csv"));
  EXPECT_THAT(packed.DescribeLeftOut(), HasSubstr(".gitignore"));
}

TEST_F(WorkFiles, NamesThatSomeTarProgramsCutAreRefused) {
  const std::string folder(90, 'a');
  Put(folder + "/" + std::string(90, 'b'), "fits");
  EXPECT_TRUE(Pack().ok());
  Put(std::string(101, 'c'), "does not fit");
  EXPECT_THAT(std::string(Pack().status().message()), HasSubstr("too long"));
}

}  // namespace
}  // namespace muster::kubernetes
