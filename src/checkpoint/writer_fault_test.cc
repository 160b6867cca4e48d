// Writers that are killed, and disks that are full.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/testing.h"
#include "checkpoint/store.h"
#include "checkpoint/testing.h"
#include "checkpoint/writer.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

constexpr int kSkipped = 77;

std::vector<base::TensorSpec> Large() { return {{"large", base::DType::kFloat32, {1 << 20}}}; }

// Saves 4 MiB to a full disk. Returns 0 if the error is the expected one.
int SaveWithoutRoom(const std::string& model_dir, int64_t step) {
  auto writer = Writer::Begin(model_dir, {.step = step}, Large(), {});
  if (!writer.ok()) return 1;
  absl::Status status = AppendAll(**writer, Large(), step);
  if (status.ok()) status = (*writer)->Commit(nlohmann::json::object());
  if (!absl::IsResourceExhausted(status)) return 2;
  if (std::filesystem::exists(CheckpointPath(model_dir, step) + kPartialSuffix)) return 3;
  return (*writer)->Append({}) == status ? 0 : 4;
}

TEST(WriterFaultTest, AFileSizeLimitIsReportedAndLeavesNothing) {
  const base::TempDir dir;
  ASSERT_TRUE(SaveStep(dir.path(), 1).ok());
  EXPECT_EQ(base::InChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1 << 20, 1 << 20};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return SaveWithoutRoom(dir.path(), 2);
            }),
            0);
  EXPECT_EQ(List(dir.path()).size(), 1u);
  EXPECT_EQ(Restore(dir.path(), std::nullopt, nullptr)->step(), 1);
}

TEST(WriterFaultTest, AFullDiskIsReportedAndTheEarlierCheckpointStays) {
  const base::TempDir dir;
  const int code = base::InChild([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return kSkipped;
    }
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=2m") != 0) return kSkipped;
    if (!SaveStep(dir.path(), 1).ok()) return 10;
    for (const int64_t step : {2, 1}) {  // another step; the same one
      if (const int wrong = SaveWithoutRoom(dir.path(), step); wrong != 0) return wrong;
    }
    const auto restored = Restore(dir.path(), std::nullopt, nullptr);
    if (!restored.ok() || restored->step() != 1 || List(dir.path()).size() != 1) return 11;
    return SaveStep(dir.path(), 3).ok() ? 0 : 12;
  });
  if (code == kSkipped) GTEST_SKIP() << "mounting is not permitted here";
  EXPECT_EQ(code, 0);
}

TEST(WriterFaultTest, LeftoversOfAKilledWriterAreIgnored) {
  const base::TempDir dir;
  ASSERT_TRUE(SaveStep(dir.path(), 1).ok());
  EXPECT_EQ(base::InChild([&] {
              auto writer = Writer::Begin(dir.path(), {.step = 2}, SomeWeights(), {});
              if (writer.ok()) AppendAll(**writer, SomeWeights(), 2).IgnoreError();
              ::raise(SIGKILL);
              return 0;
            }),
            -1);
  ASSERT_EQ(List(dir.path()).size(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(List(dir.path())[1].status));
  std::vector<std::string> skipped;
  EXPECT_EQ(Restore(dir.path(), std::nullopt, &skipped)->step(), 1);
  EXPECT_EQ(skipped.size(), 1u);
  ASSERT_TRUE(SaveStep(dir.path(), 2).ok());
  EXPECT_EQ(Restore(dir.path(), std::nullopt, nullptr)->step(), 2);
  EXPECT_EQ(List(dir.path()).size(), 2u);
}

// A process that has begun to write `step` and waits until it is released.
class LiveWriter {
 public:
  LiveWriter(const std::string& model_dir, int64_t step) {
    int begun[2], release[2];
    EXPECT_EQ(::pipe(begun), 0);
    EXPECT_EQ(::pipe(release), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(release[1]);
      auto writer = Writer::Begin(model_dir, {.step = step}, SomeWeights(), SomeSlots());
      bool ok = writer.ok() && ::write(begun[1], "x", 1) == 1;
      char byte = 0;
      ok = ok && ::read(release[0], &byte, 1) == 0;
      ok = ok && AppendAll(**writer, SomeWeights(), step).ok() &&
           AppendAll(**writer, SomeSlots(), step).ok();
      ::_exit(ok && (*writer)->Commit(nlohmann::json::object()).ok() ? 0 : 1);
    }
    ::close(begun[1]);
    ::close(release[0]);
    release_ = release[1];
    char byte = 0;
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    ::close(begun[0]);
  }

  // Lets the writer finish and returns its exit code.
  int Finish() {
    ::close(release_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = 0;
  int release_ = -1;
};

TEST(WriterFaultTest, RetainRemovesLeftoversOfDeadWritersOnly) {
  const base::TempDir dir;
  ASSERT_TRUE(SaveStep(dir.path(), 5).ok());
  std::filesystem::create_directory(CheckpointPath(dir.path(), 3) + kPartialSuffix);
  LiveWriter live(dir.path(), 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(SaveStep(dir.path(), 2)));
  ASSERT_TRUE(Retain(dir.path(), 1, {}).ok());
  EXPECT_TRUE(std::filesystem::exists(CheckpointPath(dir.path(), 2) + kPartialSuffix));
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(dir.path(), 3) + kPartialSuffix));
  EXPECT_TRUE(absl::IsFailedPrecondition(SetAside(dir.path(), 1)));
  EXPECT_EQ(List(dir.path()).size(), 2u);
  EXPECT_EQ(live.Finish(), 0);
  EXPECT_TRUE(Restore(dir.path(), 2, nullptr).ok());
}

}  // namespace
}  // namespace muster::checkpoint
