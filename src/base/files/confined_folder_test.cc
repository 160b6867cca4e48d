#include "base/files/confined_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

namespace fs = std::filesystem;
using Resolver = ConfinedFolder::Resolver;

class ConfinedFolderTest : public testing::TestWithParam<Resolver> {
 protected:
  ConfinedFolderTest() {
    fs::create_directory(In(""));
    fs::create_directory(outer_.path() + "/outside");
  }

  std::string In(const std::string& name) const { return outer_.path() + "/inside/" + name; }

  absl::Status Create(const std::string& path, const std::string& content = "x") {
    auto folder = ConfinedFolder::Open(In(""), GetParam());
    if (!folder.ok()) return folder.status();
    const auto file = folder->CreateFile(path, 0644);
    return file.ok() ? WriteAll(file->get(), content) : file.status();
  }

  const TempDir outer_;
};

TEST_P(ConfinedFolderTest, FilesFoldersAndLinksAreCreated) {
  EXPECT_TRUE(Create("a", "1").ok());
  EXPECT_TRUE(Create("deep/er/b", "2").ok());
  EXPECT_TRUE(Create("deep/er/c", "3").ok());
  auto folder = ConfinedFolder::Open(In(""), GetParam());
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(folder->CreateLink("links/a", "../a").ok());
  EXPECT_EQ(ReadFile(In("deep/er/b")).value_or(""), "2");
  EXPECT_EQ(ReadFile(In("deep/er/c")).value_or(""), "3");
  EXPECT_EQ(ReadFile(In("links/a")).value_or(""), "1");
  EXPECT_EQ(Create("a").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(folder->CreateLink("a", "b").code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(ConfinedFolderTest, PathsThatLeadOutAreRejected) {
  for (const char* path : {"", "/x", "../x", "a/../../x", "a//x", "./x", "a/.", "a/"}) {
    EXPECT_EQ(Create(path).code(), absl::StatusCode::kInvalidArgument) << path;
  }
  EXPECT_TRUE(fs::is_empty(In("")));
}

TEST_P(ConfinedFolderTest, LinksAreNotFollowed) {
  auto folder = ConfinedFolder::Open(In(""), GetParam());
  ASSERT_TRUE(folder.ok());
  const std::string outside = outer_.path() + "/outside";
  ASSERT_TRUE(folder->CreateLink("absolute", outside).ok());
  ASSERT_TRUE(folder->CreateLink("relative", "../outside").ok());
  ASSERT_TRUE(folder->CreateLink("file", outside + "/x").ok());
  ASSERT_TRUE(Create("plain").ok());
  for (const char* path : {"absolute/x", "relative/x", "relative/new/x", "plain/x"}) {
    EXPECT_EQ(Create(path).code(), absl::StatusCode::kFailedPrecondition) << path;
    EXPECT_EQ(folder->CreateLink(path, "y").code(), absl::StatusCode::kFailedPrecondition) << path;
  }
  EXPECT_EQ(Create("file").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(fs::is_empty(outside));
}

INSTANTIATE_TEST_SUITE_P(All, ConfinedFolderTest,
                         testing::Values(Resolver::kKernel, Resolver::kPartByPart));

}  // namespace
}  // namespace muster::base
