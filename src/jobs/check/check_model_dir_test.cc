#include "jobs/check/check_model_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::jobs {
namespace {

using platform::Grade;
using testing::HasSubstr;

std::string NoVariables(const std::string& /*name*/) { return ""; }

platform::Finding Check(const std::string& model_dir) {
  job::JobSpec spec;
  spec.model_dir = model_dir;
  return CheckModelDir(spec, NoVariables);
}

TEST(CheckModelDirTest, AFolderThatExistsOrCanBeMade) {
  const base::TempDir folder;
  for (const char* below : {"", "/a/b"}) {
    const platform::Finding finding = Check(absl::StrCat(folder.path(), below));
    EXPECT_EQ(finding.grade, Grade::kOk) << finding.detail;
    EXPECT_THAT(finding.detail, HasSubstr("can be written"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left behind";
  }
}

TEST(CheckModelDirTest, AFileInTheWay) {
  const base::TempDir folder;
  const std::string file = base::JoinPath(folder.path(), "file");
  ASSERT_TRUE(base::ReplaceFile(file, "x").ok());
  for (const char* below : {"", "/a"}) {
    const platform::Finding finding = Check(absl::StrCat(file, below));
    EXPECT_EQ(finding.grade, Grade::kMissing);
    EXPECT_THAT(finding.detail, HasSubstr("file: is a file; expected a folder"));
  }
}

TEST(CheckModelDirTest, AFolderThatCannotBeWritten) {
  // Not even root writes there.
  const platform::Finding finding = Check("/proc/muster/runs");
  EXPECT_EQ(finding.grade, Grade::kMissing);
  EXPECT_THAT(finding.detail, HasSubstr("/proc"));
}

TEST(CheckModelDirTest, StoragesOfOthersAreNotChecked) {
  const platform::Finding finding = Check("abfs://container/x");
  EXPECT_EQ(finding.grade, Grade::kWarning);
  EXPECT_THAT(finding.detail, HasSubstr("abfs://container/x: not checked"));
}

TEST(CheckModelDirTest, ADefaultFileSystemNeedsAConfiguration) {
  const platform::Finding finding = Check("hdfs:///x");
  EXPECT_EQ(finding.grade, Grade::kMissing);
  EXPECT_THAT(finding.detail, HasSubstr("HADOOP_CONF_DIR is not set"));
}

}  // namespace
}  // namespace muster::jobs
