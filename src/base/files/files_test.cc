#include "base/files/files.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

class FilesTest : public testing::Test {
 protected:
  const TempDir temp_;
  const std::string directory_ = temp_.path();
};

TEST_F(FilesTest, WritesAndReadsBack) {
  const std::string path = JoinPath(directory_, "f");
  ASSERT_TRUE(WriteFileAtomically(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two").ok());
  EXPECT_EQ(*ReadFile(path), "two");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
  // No temporary file stays behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1);
}

TEST_F(FilesTest, AbsentAndTooLargeFilesAreErrors) {
  EXPECT_EQ(ReadFile(JoinPath(directory_, "absent")).status().code(), absl::StatusCode::kNotFound);
  const std::string path = JoinPath(directory_, "large");
  ASSERT_TRUE(WriteFileAtomically(path, std::string(100, 'x')).ok());
  EXPECT_EQ(ReadFile(path, 99).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(FilesTest, WriteIntoAbsentDirectoryNamesThePath) {
  const absl::Status status = WriteFileAtomically(directory_ + "/no/f", "x");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/no/f"), std::string::npos);
}

TEST_F(FilesTest, MakesNestedDirectoriesPrivate) {
  const std::string path = directory_ + "/a/b/c";
  ASSERT_TRUE(MakeDirectories(path).ok());
  ASSERT_TRUE(MakeDirectories(path).ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/file", "").ok());
  EXPECT_FALSE(MakeDirectories(directory_ + "/file").ok());
}

TEST(PathTest, AbsolutePathKeepsUrlsAndCleansPaths) {
  EXPECT_EQ(AbsolutePath("runs/x", "/home/u"), "/home/u/runs/x");
  EXPECT_EQ(AbsolutePath("../x/./y/", "/home/u"), "/home/x/y");
  EXPECT_EQ(AbsolutePath("/abs", "/home/u"), "/abs");
  EXPECT_EQ(AbsolutePath("gs://b/p", "/home/u"), "gs://b/p");
}

}  // namespace
}  // namespace muster::base
