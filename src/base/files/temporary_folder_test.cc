#include "base/files/temporary_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(TemporaryFolderTest, IsPrivateAndRemovedWithItsContent) {
  const TempDir temp;
  std::string path;
  {
    auto folder = TemporaryFolder::Create(JoinPath(temp.path(), "a/b"));
    ASSERT_TRUE(folder.ok()) << folder.status();
    path = folder->path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
    ASSERT_TRUE(MakeDirectories(folder->File("x/y")).ok());
    ASSERT_TRUE(ReplaceFile(folder->File("x/y/z"), "text").ok());
    const TemporaryFolder moved = *std::move(folder);
    EXPECT_EQ(moved.path(), path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(JoinPath(temp.path(), "a/b")));
}

TEST(TemporaryFolderTest, ReportsAnUnusableParent) {
  const TempDir temp;
  const std::string file = JoinPath(temp.path(), "file");
  ASSERT_TRUE(ReplaceFile(file, "text").ok());
  EXPECT_FALSE(TemporaryFolder::Create(JoinPath(file, "below")).ok());
}

}  // namespace
}  // namespace muster::base
