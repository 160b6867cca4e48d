#include "worktree/gitignore.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "base/text/terminal_text.h"
#include "gmock/gmock.h"
#include "worktree/worktree.h"

namespace muster::worktree {
namespace {

using Verdict = GitIgnore::Verdict;

TEST(GitIgnoreTest, LinesMatchPaths) {
  const GitIgnore rules = GitIgnore::Parse(
      "# a comment\n\n*.o\n!keep.o\n/top\nout/\ndoc/*.txt\n**/deep\nall/**\na/**/b\n\\#sharp\n"
      "space\\ \ntrail  \n[a-c]x[!0-9]\r\n");
  const auto ignored = [&rules](absl::string_view path, bool folder = false) {
    return rules.Match(path, folder) == Verdict::kIgnored;
  };
  EXPECT_TRUE(ignored("x.o"));
  EXPECT_TRUE(ignored("a/x.o"));
  EXPECT_EQ(rules.Match("a/keep.o", false), Verdict::kKept);
  EXPECT_EQ(rules.Match("other", false), Verdict::kNone);
  EXPECT_TRUE(ignored("top"));
  EXPECT_FALSE(ignored("a/top"));
  EXPECT_TRUE(ignored("a/out", true));
  EXPECT_FALSE(ignored("a/out", false));
  EXPECT_TRUE(ignored("doc/x.txt"));
  EXPECT_FALSE(ignored("doc/a/x.txt"));
  EXPECT_FALSE(ignored("a/doc/x.txt"));
  EXPECT_TRUE(ignored("deep"));
  EXPECT_TRUE(ignored("x/y/deep"));
  EXPECT_TRUE(ignored("all/x/y"));
  EXPECT_FALSE(ignored("all", true));
  EXPECT_TRUE(ignored("a/b"));
  EXPECT_TRUE(ignored("a/x/y/b"));
  EXPECT_FALSE(ignored("a/xb"));
  EXPECT_TRUE(ignored("#sharp"));
  EXPECT_TRUE(ignored("space "));
  EXPECT_TRUE(ignored("trail"));
  EXPECT_TRUE(ignored("bxy"));
  EXPECT_FALSE(ignored("bx1"));
}

TEST(GitIgnoreTest, ANameIsKeptByALineWithoutWildcards) {
  const GitIgnore rules =
      GitIgnore::Parse("*\n!*.py\n!.*\n!.env\n!/a/key\n!.aws/\n!other\nother\n");
  EXPECT_TRUE(rules.KeepsByName("deep/.env", false));
  EXPECT_TRUE(rules.KeepsByName("a/key", false));
  EXPECT_TRUE(rules.KeepsByName(".aws", true));
  EXPECT_FALSE(rules.KeepsByName(".aws", false));
  EXPECT_FALSE(rules.KeepsByName("x.py", false));
  EXPECT_FALSE(rules.KeepsByName(".netrc", false));
  EXPECT_FALSE(rules.KeepsByName("other", false));
}

TEST(GitIgnoreTest, HostilePatternsTakeNoTime) {
  const std::string stars = absl::StrJoin(std::vector<std::string>(200, "*a"), "");
  const std::string folders = absl::StrJoin(std::vector<std::string>(200, "**/a"), "/");
  const GitIgnore rules =
      GitIgnore::Parse(absl::StrCat(stars, "b\nx/", stars, "b\n", folders, "/b\n"));
  const std::string path = absl::StrJoin(std::vector<std::string>(500, "a"), "/");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(rules.Match(path, false), Verdict::kNone);
  EXPECT_EQ(rules.Match(std::string(4000, 'a'), false), Verdict::kNone);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
}

// Returns the files that git lists in a folder, independent of the user's git settings.
std::set<std::string> GitLists(const std::string& folder) {
  const std::string command =
      absl::StrCat("cd ", base::ShellQuote(folder),
                   " && HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 git -c core.excludesFile=/dev/null "
                   "-c core.quotePath=false ls-files -z -co --exclude-standard 2>&1");
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    output.append(buffer, n);
  EXPECT_EQ(::pclose(pipe), 0) << output;
  return absl::StrSplit(output, '\0', absl::SkipEmpty());
}

void InitRepository(const std::string& folder) {
  const std::string command = absl::StrCat(
      "HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 git init -q --template= ", base::ShellQuote(folder),
      " >/dev/null 2>&1");
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_EQ(::pclose(pipe), 0) << "git init " << folder;
}

std::set<std::string> WeList(const std::string& folder) {
  const auto files = ListWorkDir(folder);
  EXPECT_TRUE(files.ok()) << files.status();
  std::set<std::string> paths;
  if (files.ok()) {
    for (const WorkFile& file : *files) paths.insert(file.path);
  }
  return paths;
}

// Random trees and .gitignore files of few names, so that patterns often match paths.
class RandomTree {
 public:
  RandomTree(std::string root, unsigned seed) : root_(std::move(root)), random_(seed) {}

  void Make() {
    Fill("", 3);
    InitRepository(root_);
  }

 private:
  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }
  template <size_t N>
  std::string OneOf(const char* const (&from)[N]) {
    return from[Below(N)];
  }

  std::string Name() {
    return OneOf({"a", "b", "ab", "abc", "a.o", "b.o", "x y", "#h", "!n", "a[1]", "a*", "c\\d", "-",
                  "é", "tail ", "Makefile", "build", "b-1"});
  }

  std::string Piece() {
    if (Below(3) == 0) return Name();
    return OneOf(
        {"*",          "**",      "?",     "a*",           "*b",    "*.o",      "a?",
         "[a-c]",      "[!a]*",   "[^b]?", "a[[:digit:]]", "\\a",   "[]a]",     "[a",
         "[[:nope:]]", "\\*",     "***",   "a**",          "**b",   "[a-",      "x\\ y",
         "\\",         "[\\]a]b", "[b-a]", "[-a]",         "*[1]*", "a\\[1\\]", "[[:alpha:]b]*",
         "[[:a]"});
  }

  std::string Line() {
    if (Below(12) == 0)
      return OneOf({"", "# note", "   ", "/", "!", "!/", "**/", "/**", "\\!n", "\\#h", "//"});
    std::string line = Below(4) == 0 ? "!" : "";
    if (Below(4) == 0) line += "/";
    const size_t parts = 1 + Below(3);
    for (size_t i = 0; i < parts; ++i) absl::StrAppend(&line, i == 0 ? "" : "/", Piece());
    if (Below(4) == 0) line += "/";
    if (Below(8) == 0) line += "  ";
    if (Below(16) == 0) line += "\\ ";
    if (Below(16) == 0) line += "\r";
    return line;
  }

  void Fill(const std::string& within, int depth) {
    std::filesystem::create_directories(root_ + "/" + within);
    for (size_t i = 2 + Below(5); i > 0; --i) {
      const std::string path = within + Name();
      if (std::filesystem::exists(std::filesystem::symlink_status(root_ + "/" + path))) continue;
      const size_t kind = Below(10);
      if (kind < 4 && depth > 0) {
        Fill(path + "/", depth - 1);
      } else if (kind == 9) {
        std::filesystem::create_symlink(".", root_ + "/" + path);
      } else {
        ASSERT_TRUE(base::ReplaceFile(root_ + "/" + path, "x").ok());
      }
    }
    if (within.empty() || Below(4) == 0) {
      std::string text = Below(10) == 0 ? "\xef\xbb\xbf" : "";
      for (size_t i = 1 + Below(6); i > 0; --i) absl::StrAppend(&text, Line(), "\n");
      if (Below(2) == 0) text.pop_back();
      ASSERT_TRUE(base::ReplaceFile(root_ + "/" + within + ".gitignore", text).ok());
    }
  }

  const std::string root_;
  std::mt19937 random_;
};

std::string RulesIn(const std::string& root) {
  std::string text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != ".gitignore") continue;
    absl::StrAppend(&text, entry.path().string(), ":\n", base::ReadFile(entry.path()).value_or(""),
                    "\n");
  }
  return text;
}

TEST(GitIgnoreTest, RandomTreesAreListedAsGitListsThem) {
  if (::access("/usr/bin/git", X_OK) != 0) GTEST_SKIP() << "git is not installed";
  const base::TempDir folder;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const std::string root = absl::StrCat(folder.path(), "/", seed);
    RandomTree(root, seed).Make();
    ASSERT_EQ(WeList(root), GitLists(root)) << "seed " << seed << "\n" << RulesIn(root);
  }
}

// A listing that starts in a subfolder of a repository applies the rules above it.
TEST(GitIgnoreTest, FoldersOfRandomTreesAreListedAsGitListsThem) {
  if (::access("/usr/bin/git", X_OK) != 0) GTEST_SKIP() << "git is not installed";
  const base::TempDir folder;
  int compared = 0;
  for (unsigned seed = 1000; seed < 1030; ++seed) {
    const std::string root = absl::StrCat(folder.path(), "/", seed);
    RandomTree(root, seed).Make();
    std::set<std::string> folders;
    for (const std::string& path : GitLists(root)) {
      const std::string parent = std::filesystem::path(path).parent_path();
      if (!parent.empty()) folders.insert(parent);
    }
    for (const std::string& inner : folders) {
      const std::string path = absl::StrCat(root, "/", inner);
      ASSERT_EQ(WeList(path), GitLists(path)) << path << "\n" << RulesIn(root);
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace muster::worktree
