#include "base/files/cache_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(CacheFolderTest, DefaultsDependOnTheEnvironment) {
  std::map<std::string, std::string> values;
  const Variables variables = [&values](const std::string& name) { return values[name]; };
  EXPECT_EQ(UserCacheFolder(variables), absl::StrCat("/tmp/muster-", ::geteuid()));
  values["HOME"] = "/home/me";
  EXPECT_EQ(UserCacheFolder(variables), "/home/me/.cache/muster");
  values["XDG_CACHE_HOME"] = "relative";
  EXPECT_EQ(UserCacheFolder(variables), "/home/me/.cache/muster");
  values["XDG_CACHE_HOME"] = "/var/cache";
  EXPECT_EQ(UserCacheFolder(variables), "/var/cache/muster");
}

class TrustedFolderTest : public testing::Test {
 protected:
  TrustedFolderTest() {
    fs::create_directory(shared_);
    ::chmod(shared_.c_str(), 01777);
  }
  static constexpr uid_t kStranger = 54321;
  const TempDir dir_;
  const std::string shared_ = dir_.path() + "/shared";
};

TEST_F(TrustedFolderTest, OwnFoldersAreCreated) {
  EXPECT_TRUE(MakeTrustedFolder(shared_ + "/mine/deep/er/").ok());
  struct stat info {};
  ASSERT_EQ(::stat((shared_ + "/mine/deep").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  EXPECT_TRUE(MakeTrustedFolder(shared_ + "/mine/deep/er").ok());
}

TEST_F(TrustedFolderTest, WorldWritableFolderIsRejected) {
  const absl::Status refused = MakeTrustedFolder(shared_);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("world-writable"));
}

TEST_F(TrustedFolderTest, FolderOfAnotherUserIsRejected) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders to others";
  fs::create_directories(shared_ + "/theirs/.cache");
  ASSERT_EQ(::lchown((shared_ + "/theirs").c_str(), kStranger, kStranger), 0);
  const absl::Status refused = MakeTrustedFolder(shared_ + "/theirs/.cache/muster");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << refused;
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(HasSubstr(shared_ + "/theirs belongs"), HasSubstr("MUSTER_CACHE")));
  // A link owned by another user to a folder of this user.
  fs::create_directory(dir_.path() + "/own");
  fs::create_directory_symlink(dir_.path() + "/own", shared_ + "/link");
  EXPECT_TRUE(MakeTrustedFolder(shared_ + "/link/x").ok());
  ASSERT_EQ(::lchown((shared_ + "/link").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(MakeTrustedFolder(shared_ + "/link/x").code(), absl::StatusCode::kPermissionDenied);
  // A link of this user into a folder of another user.
  fs::create_directory_symlink(shared_ + "/theirs", dir_.path() + "/into");
  EXPECT_EQ(MakeTrustedFolder(dir_.path() + "/into/x").code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace muster::base
