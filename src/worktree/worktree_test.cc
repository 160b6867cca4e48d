#include "worktree/worktree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/testing.h"
#include "gmock/gmock.h"

namespace muster::worktree {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Message(const absl::StatusOr<std::vector<WorkFile>>& result) {
  return std::string(result.status().message());
}

class WorkDirTest : public testing::Test {
 protected:
  WorkDirTest() : root_(outer_.path() + "/job") { std::filesystem::create_directory(root_); }

  std::string In(const std::string& path) const { return root_ + "/" + path; }

  void Write(const std::string& path, const std::string& content, int mode = 0644) {
    ASSERT_TRUE(base::MakeDirectories(base::FolderOf(In(path))).ok());
    ASSERT_TRUE(base::ReplaceFile(In(path), content, mode).ok());
  }

  void Link(const std::string& target, const std::string& path) {
    std::filesystem::create_symlink(target, In(path));
  }

  std::vector<std::string> Paths() {
    const auto files = ListWorkDir(root_);
    EXPECT_TRUE(files.ok()) << files.status();
    std::vector<std::string> paths;
    if (files.ok()) {
      for (const WorkFile& file : *files) paths.push_back(file.path);
    }
    return paths;
  }

  base::TempDir outer_;
  const std::string root_;
};

TEST_F(WorkDirTest, FilesLinksAndModes) {
  Write("run.sh", "#!/bin/sh\n", 0750);
  Write("src/model.py", "pass\n", 0600);
  Write("empty", "");
  std::filesystem::create_directories(In("nothing/within"));
  Link("src/model.py", "model");
  Link("../run.sh", "src/run");
  Link("gone", "dangling");
  Link("circle", "circle");
  ASSERT_EQ(::mkfifo(In("pipe").c_str(), 0600), 0);
  const auto files = ListWorkDir(root_);
  ASSERT_TRUE(files.ok()) << files.status();
  std::vector<std::string> seen;
  for (const WorkFile& file : *files) {
    seen.push_back(
        absl::StrCat(file.path, " ", file.size, " ", absl::Hex(file.mode), " ", file.link_target));
  }
  EXPECT_THAT(seen, ElementsAre("circle 0 1a4 circle", "dangling 0 1a4 gone", "empty 0 1a4 ",
                                "model 0 1a4 src/model.py", "run.sh 10 1ed ", "src/model.py 5 1a4 ",
                                "src/run 0 1a4 ../run.sh"));
}

TEST_F(WorkDirTest, GitItselfIsNeverSentAndARepositoryWithinHasItsOwnRules) {
  Write(".gitignore", "*.o\nsecret\n");
  Write(".git/config", "");
  Write("a.o", "");
  Write("sub/.git/HEAD", "");
  Write("sub/.gitignore", "*.txt\n");
  Write("sub/a.o", "");
  Write("sub/a.txt", "");
  Write("sub/secret/b.o", "");
  Write("module/.git", "gitdir: ../.git/modules/module\n");
  Write("module/a.txt", "");
  Write("plain/secret/b", "");
  EXPECT_THAT(Paths(), ElementsAre(".gitignore", "module/a.txt", "sub/.gitignore", "sub/a.o",
                                   "sub/secret/b.o"));
}

TEST_F(WorkDirTest, RulesAboveCountWithinARepositoryOnly) {
  ASSERT_TRUE(base::ReplaceFile(outer_.path() + "/.gitignore", "*.o\n/job/out\n").ok());
  Write("a.o", "");
  Write("out", "");
  EXPECT_THAT(Paths(), ElementsAre("a.o", "out"));
  std::filesystem::create_directory(outer_.path() + "/.git");
  EXPECT_THAT(Paths(), ElementsAre());
  Write(".gitignore", "!a.o\n");
  EXPECT_THAT(Paths(), ElementsAre(".gitignore", "a.o"));
}

// A folder that its repository ignores is sent if the job runs from it.
TEST_F(WorkDirTest, AnIgnoredFolderMayBeTheRoot) {
  ASSERT_TRUE(base::ReplaceFile(outer_.path() + "/.gitignore", "job/\n").ok());
  std::filesystem::create_directory(outer_.path() + "/.git");
  Write("a", "");
  EXPECT_THAT(Paths(), ElementsAre("a"));
}

TEST_F(WorkDirTest, AGitIgnoreThatIsALinkIsNotFollowed) {
  Write("rules", "a\n");
  Write("a", "");
  Link("rules", ".gitignore");
  EXPECT_THAT(Paths(), ElementsAre(".gitignore", "a", "rules"));
}

TEST_F(WorkDirTest, LinksThatLeadOutAreNamed) {
  Write("a/file", "");
  Link("/etc/passwd", "absolute");
  Link("../../elsewhere", "a/outside");
  Link("a/..", "fine");
  // `hidden` stays inside by its name, but `up` leads further up.
  Write("deep/er/file", "");
  Link("../..", "deep/er/up");
  Link("deep/er/up/../x", "hidden");
  EXPECT_THAT(Message(ListWorkDir(root_)),
              AllOf(HasSubstr("absolute -> /etc/passwd"), HasSubstr("a/outside -> ../../elsewhere"),
                    HasSubstr("hidden -> deep/er/up/../x"), Not(HasSubstr("fine")),
                    HasSubstr(".gitignore")));
  EXPECT_EQ(ListWorkDir(root_).status().code(), absl::StatusCode::kFailedPrecondition);
  Write(".gitignore", "absolute\noutside\nhidden\n");
  EXPECT_TRUE(ListWorkDir(root_).ok());
}

TEST_F(WorkDirTest, RejectsNamesThatAreNotUtf8) {
  Write("a\xffz", "");
  EXPECT_THAT(Message(ListWorkDir(root_)),
              AllOf(HasSubstr("a\\xffz"), HasSubstr("UTF-8"), HasSubstr("rename")));
}

TEST_F(WorkDirTest, TooLargeFoldersAreRejectedWithTheLargestEntries) {
  Write("src/a", std::string(100, 'a'));
  Write("data/raw/one", std::string(90'000, 'a'));
  Write("data/raw/two", std::string(40'000, 'a'));
  Write("data/note", "");
  const auto refused = ListWorkDir(root_, {}, {.max_bytes = 100'000});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(refused), AllOf(HasSubstr("data/raw/one (88KiB), data/raw/two (39KiB)"),
                                      HasSubstr(".gitignore"), HasSubstr("98KiB")));
  EXPECT_THAT(Message(ListWorkDir(root_, {}, {.max_files = 3})),
              AllOf(HasSubstr("more than 3 files"), HasSubstr(".gitignore")));
  Write(".gitignore", "data/raw/one\n");
  EXPECT_TRUE(ListWorkDir(root_, {}, {.max_bytes = 100'000, .max_files = 4}).ok());
}

TEST_F(WorkDirTest, KeysAndMustersHomeAreNeverSentUnderAnyName) {
  Write("keep", "");
  Write("deep/key.json", "secret");
  Write("home/jobs/x/job.json", "");
  Link("home", "link");
  std::filesystem::create_hard_link(In("deep/key.json"), In("also"));
  std::filesystem::create_symlink(In("deep/key.json"), outer_.path() + "/by-another-name");
  std::vector<std::string> told;
  const auto files =
      ListWorkDir(root_, {.home = In("link"),
                          .keys = {outer_.path() + "/by-another-name", outer_.path() + "/none"},
                          .notice = [&told](const std::string& text) { told.push_back(text); }});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ(files->front().path, "keep");
  EXPECT_EQ(files->back().path, "link");  // the link itself
  EXPECT_THAT(told, testing::UnorderedElementsAre(HasSubstr("deep/key.json is not sent"),
                                                  HasSubstr("also is not sent")));
}

// Returns the paths in the folder; `notices` receives the messages to the user.
std::vector<std::string> PathsAndNotices(const std::string& root,
                                         std::vector<std::string>& notices) {
  const auto files = ListWorkDir(
      root, {.notice = [&notices](const std::string& text) { notices.push_back(text); }});
  EXPECT_TRUE(files.ok()) << files.status();
  std::vector<std::string> paths;
  for (const WorkFile& file : files.value_or(std::vector<WorkFile>())) paths.push_back(file.path);
  return paths;
}

TEST_F(WorkDirTest, CredentialsAreLeftOutAndNamed) {
  for (const char* path :
       {".aws/credentials", ".kube/config", ".netrc", ".gnupg/secring.gpg", ".docker/config.json",
        ".config/gcloud/access_tokens.db", ".huggingface/token", ".cache/huggingface/token", ".env",
        ".env.production", "sub/.env", "sub/deep/.config/gcloud/x", ".ssh/id_ed25519", "id_rsa",
        "sub/.ssh/config", ".git-credentials", ".pypirc"}) {
    Write(path, "secret");
  }
  for (const char* path : {"train.py", ".env.example", "sub/env", "gcloud/x", ".config/app.toml",
                           ".cache/data", "kube/config", "sub/ssh"}) {
    Write(path, "");
  }
  std::vector<std::string> notices;
  EXPECT_THAT(PathsAndNotices(root_, notices),
              ElementsAre(".cache/data", ".config/app.toml", ".env.example", "gcloud/x",
                          "kube/config", "sub/env", "sub/ssh", "train.py"));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_THAT(notices[0],
              AllOf(HasSubstr("not sent with the job"), HasSubstr(".aws, .cache/huggingface, "),
                    HasSubstr(".config/gcloud"), HasSubstr("sub/.env"), HasSubstr(".gitignore")));
}

TEST_F(WorkDirTest, CredentialsAreSentOnlyWhenNamed) {
  Write(".env", "A=1");
  Write(".env.local", "B=2");
  Write(".aws/config", "");
  Write(".ssh/config", "");
  Write("sub/.netrc", "");
  // Lines with wildcards do not keep credentials, and .ssh is never sent.
  Write(".gitignore", "!.*\n!*.local\n!/sub/.netrc\n!.ssh\n!.env\n!.aws/\n");
  std::vector<std::string> notices;
  EXPECT_THAT(PathsAndNotices(root_, notices),
              ElementsAre(".aws/config", ".env", ".gitignore", "sub/.netrc"));
  EXPECT_THAT(notices, ElementsAre(HasSubstr(": .env.local, .ssh;")));
  // Entries that git ignores are left out without a notice.
  Write(".gitignore", ".env*\n.aws\n.ssh\n.netrc\n");
  notices.clear();
  EXPECT_THAT(PathsAndNotices(root_, notices), ElementsAre(".gitignore"));
  EXPECT_THAT(notices, ElementsAre());
}

TEST_F(WorkDirTest, AMissingFolderOrAFile) {
  EXPECT_EQ(ListWorkDir(In("gone")).status().code(), absl::StatusCode::kNotFound);
  Write("file", "");
  EXPECT_THAT(Message(ListWorkDir(In("file"))), HasSubstr("is not a folder"));
}

class HashFilesTest : public WorkDirTest {
 protected:
  std::vector<WorkFile> Listing() {
    auto files = ListWorkDir(root_);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *files : std::vector<WorkFile>();
  }

  // Hashes `later` than the files' own times, by default late enough for the cache to keep them.
  int64_t Hash(std::vector<WorkFile>& files, absl::Duration later = absl::Hours(1)) {
    const auto bytes = HashFiles(root_, files, cache_, absl::Now() + later);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or(-1);
  }

  // Writes new content of the same size and restores mtime. Repeats until ctime has changed.
  void ChangeUnseen(const std::string& path, const std::string& content) {
    struct stat before {
    }, after{};
    ASSERT_EQ(::stat(In(path).c_str(), &before), 0);
    do {
      const base::UniqueFd fd(::open(In(path).c_str(), O_WRONLY | O_CLOEXEC));
      ASSERT_TRUE(base::WriteAll(fd.get(), content).ok());
      const timespec times[2] = {before.st_atim, before.st_mtim};
      ASSERT_EQ(::futimens(fd.get(), times), 0);
      ASSERT_EQ(::fstat(fd.get(), &after), 0);
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  }

  const std::string cache_ = outer_.path() + "/cache";
};

TEST_F(HashFilesTest, OnlyChangedFilesAreReadAgain) {
  Write("a", "first");
  Write("b/c", std::string(1 << 20, 'x'));
  Write("with\nline", "12");
  Link("a", "link");
  auto files = Listing();
  EXPECT_EQ(Hash(files), 5 + (1 << 20) + 2);
  EXPECT_EQ(files[0].sha256, base::Sha256Hex("first"));
  EXPECT_EQ(files[1].sha256, base::Sha256Hex(std::string(1 << 20, 'x')));
  EXPECT_EQ(files[2].sha256, "");
  const auto before = files;

  files = Listing();
  EXPECT_EQ(Hash(files), 0);
  EXPECT_EQ(files[1].sha256, before[1].sha256);

  ChangeUnseen("a", "again");
  files = Listing();
  EXPECT_EQ(Hash(files), 5);
  EXPECT_EQ(files[0].sha256, base::Sha256Hex("again"));
}

// The file may change again within one tick of the clock.
TEST_F(HashFilesTest, RecentlyChangedFilesAreNotCached) {
  Write("a", "first");
  auto files = Listing();
  EXPECT_EQ(Hash(files, absl::ZeroDuration()), 5);
  files = Listing();
  EXPECT_EQ(Hash(files), 5);
  files = Listing();
  EXPECT_EQ(Hash(files), 0);
}

TEST_F(HashFilesTest, TimesShowWhetherAFileHasChanged) {
  Write("a", "first");
  const base::UniqueFd fd(::open(In("a").c_str(), O_RDONLY | O_CLOEXEC));
  auto files = Listing();
  Hash(files, absl::ZeroDuration());
  EXPECT_FALSE(IsUnchangedSinceHash(fd.get(), files[0]))
      << "it might change within this tick of the clock";
  Hash(files);
  EXPECT_TRUE(IsUnchangedSinceHash(fd.get(), files[0]));
  Hash(files);  // now from the cache
  EXPECT_TRUE(IsUnchangedSinceHash(fd.get(), files[0]));
  ChangeUnseen("a", "again");
  EXPECT_FALSE(IsUnchangedSinceHash(fd.get(), files[0]));
}

TEST_F(HashFilesTest, ADamagedCacheIsIgnored) {
  Write("a", "first");
  auto files = Listing();
  EXPECT_EQ(Hash(files), 5);
  const std::string good = *base::ReadFile(cache_);
  std::string flipped = good;
  flipped[flipped.size() - 3] ^= 1;
  const std::string other_hash =
      absl::StrReplaceAll(good, {{base::Sha256Hex("first"), base::Sha256Hex("wrong")}});
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), flipped, other_hash, good + "x",
        std::string("muster work-dir 1 \n"), std::string(100, '\0')}) {
    ASSERT_TRUE(base::ReplaceFile(cache_, bad).ok());
    files = Listing();
    EXPECT_EQ(Hash(files), 5);
    EXPECT_EQ(files[0].sha256, base::Sha256Hex("first"));
    EXPECT_EQ(*base::ReadFile(cache_), good);
  }
  files = Listing();
  EXPECT_EQ(Hash(files), 0);
}

TEST_F(HashFilesTest, ACacheThatCannotBeWrittenIsNoError) {
  Write("a", "first");
  auto files = Listing();
  const auto bytes = HashFiles(root_, files, "/nonexistent/folder/cache");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, 5);
  EXPECT_TRUE(HashFiles(root_, files, "").ok());
}

TEST_F(HashFilesTest, ChangesAfterTheListingAreHashed) {
  Write("a", "first");
  auto files = Listing();
  Write("a", "longer than before", 0755);
  EXPECT_EQ(Hash(files), 18);
  EXPECT_EQ(files[0].size, 18);
  EXPECT_EQ(files[0].mode, 0755U);
  EXPECT_EQ(files[0].sha256, base::Sha256Hex("longer than before"));
  std::filesystem::remove(In("a"));
  EXPECT_EQ(HashFiles(root_, files, "").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::worktree
