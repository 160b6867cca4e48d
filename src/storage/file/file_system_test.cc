#include "storage/file/file_system.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/testing/conformance.h"

namespace muster::storage {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kSkipped = 77;

class LocalPlace final : public Place {
 public:
  FileSystem& files() override { return files_; }
  Url root() override { return *ParseUrl(dir_.path()); }

 private:
  const base::TempDir dir_;
  LocalFileSystem files_;
};

INSTANTIATE_TEST_SUITE_P(File, ConformanceTest,
                         testing::Values(Backend{
                             .name = "file",
                             .make = [](std::string*) { return std::make_unique<LocalPlace>(); },
                         }));

class LocalFileSystemTest : public testing::Test {
 protected:
  Url At(const std::string& name) { return {.name = base::JoinPath(dir_.path(), name)}; }
  // Returns the real content of the folder, including temporary files.
  size_t Entries() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_.path()), {}));
  }

  const base::TempDir dir_;
  LocalFileSystem files_;
};

TEST_F(LocalFileSystemTest, ADroppedWriterLeavesNoTemporaryFile) {
  {
    auto writer = files_.OpenForWriting(At("a"), IfExists::kReplace);
    ASSERT_TRUE((*writer)->Append("x").ok());
    EXPECT_EQ(Entries(), 1u);
  }
  EXPECT_EQ(Entries(), 0u);
  ASSERT_TRUE(WriteWhole(files_, At("a"), "x", IfExists::kFail).ok());
  EXPECT_FALSE(WriteWhole(files_, At("a"), "x", IfExists::kFail).ok());
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(LocalFileSystemTest, ModesFollowTheUmask) {
  const mode_t before = ::umask(027);
  ASSERT_TRUE(WriteWhole(files_, At("d/a"), "x").ok());
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(At("d/a").name.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640);
  ASSERT_EQ(::stat(At("d").name.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750);
}

TEST_F(LocalFileSystemTest, AReadOnlyFolderIsNamed) {
  const int code = base::InChild([&] {
    fs::create_directory(At("locked").name);
    ::chmod(At("locked").name.c_str(), 0555);
    ::chmod(dir_.path().c_str(), 0755);
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return kSkipped;
    const absl::Status status = WriteWhole(files_, At("locked/a"), "x");
    if (!absl::IsPermissionDenied(status)) return 1;
    return status.message().find("locked") != absl::string_view::npos ? 0 : 2;
  });
  if (code == kSkipped) GTEST_SKIP() << "this process may write everywhere";
  EXPECT_EQ(code, 0);
}

TEST_F(LocalFileSystemTest, AFileInTheWayOfAFolderIsNamed) {
  ASSERT_TRUE(WriteWhole(files_, At("a"), "x").ok());
  EXPECT_THAT(WriteWhole(files_, At("a/b"), "y").message(), HasSubstr("not a directory"));
  fs::create_directory(At("d").name);
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteWhole(files_, At("d"), "x")));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.OpenForReading(At("d")).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.Delete(At("d"))));
}

// Writes 4 MiB to a full disk. Returns 0 if the error is the expected one.
int WriteWithoutRoom(LocalFileSystem& files, const Url& url, const std::string& folder) {
  if (!absl::IsResourceExhausted(WriteWhole(files, url, std::string(4 << 20, 'x')))) return 2;
  return std::distance(fs::directory_iterator(folder), {}) == 0 ? 0 : 3;
}

TEST_F(LocalFileSystemTest, AFileSizeLimitIsReported) {
  EXPECT_EQ(base::InChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1 << 20, 1 << 20};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return WriteWithoutRoom(files_, At("a"), dir_.path());
            }),
            0);
}

TEST_F(LocalFileSystemTest, AFullDiskIsReported) {
  const int code = base::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return kSkipped;
    }
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", dir_.path().c_str(), "tmpfs", 0, "size=2m") != 0) return kSkipped;
    if (const int wrong = WriteWithoutRoom(files_, At("a"), dir_.path()); wrong != 0) return wrong;
    return WriteWhole(files_, At("a"), "small").ok() ? 0 : 4;
  });
  if (code == kSkipped) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(code, 0);
}

TEST_F(LocalFileSystemTest, LinksAreFollowedAndALoopEnds) {
  ASSERT_TRUE(WriteWhole(files_, At("real/a"), "x").ok());
  fs::create_directory_symlink(At("real").name, At("link").name);
  fs::create_directory_symlink(dir_.path(), At("real/up").name);
  fs::create_symlink("nowhere", At("broken").name);
  ::mkfifo(At("pipe").name.c_str(), 0600);
  const auto found = files_.List(At(""), Depth::kAll);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*ReadWhole(files_, At("link/a")), "x");
  EXPECT_EQ(found->front().url, At("link/a"));
  EXPECT_LT(found->size(), 10u);
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.OpenForReading(At("pipe")).status()));
}

TEST_F(LocalFileSystemTest, RelativeNamesStayRelative) {
  ASSERT_TRUE(WriteWhole(files_, At("d/a"), "x").ok());
  EXPECT_EQ(base::InChild([&] {
              if (::chdir(dir_.path().c_str()) != 0) return 1;
              const auto here = files_.List({.name = ""}, Depth::kHere);
              if (!here.ok() || here->size() != 1 || here->at(0).url.name != "d/") return 2;
              const auto all = files_.List({.name = "d/"}, Depth::kAll);
              if (!all.ok() || all->size() != 1 || all->at(0).url.name != "d/a") return 3;
              return WriteWhole(files_, {.name = "b"}, "y").ok() ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace muster::storage
