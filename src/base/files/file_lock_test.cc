#include "base/files/file_lock.h"

#include <string>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

using Mode = FileLock::Mode;

class FileLockTest : public ::testing::Test {
 protected:
  const TempDir folder_;
  const std::string path_ = JoinPath(folder_.path(), "lock");
};

// Returns whether the lock could be taken. Releases it again.
bool IsFree(const std::string& path, Mode mode) {
  const auto lock = FileLock::Try(path, mode);
  EXPECT_TRUE(lock.ok()) << lock.status();
  return lock.ok() && lock->has_value();
}

TEST_F(FileLockTest, ExcludesOthersUntilItIsReleased) {
  {
    const auto lock = FileLock::Acquire(path_, absl::Seconds(10));
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_FALSE(IsFree(path_, Mode::kExclusive));
    EXPECT_FALSE(IsFree(path_, Mode::kShared));
  }
  EXPECT_TRUE(IsFree(path_, Mode::kExclusive));
}

TEST_F(FileLockTest, SharedLocksExcludeOnlyExclusiveOnes) {
  const auto lock = FileLock::Acquire(path_, {.timeout = absl::Seconds(10), .mode = Mode::kShared});
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(IsFree(path_, Mode::kShared));
  EXPECT_FALSE(IsFree(path_, Mode::kExclusive));
}

TEST_F(FileLockTest, WaitsForTheHolder) {
  auto held = FileLock::Try(path_);
  ASSERT_TRUE(held.ok() && held->has_value());
  int polls = 0;
  // The holder lets go while the other waits.
  const auto lock = FileLock::Acquire(path_, {.timeout = absl::Seconds(60), .cancelled = [&] {
                                                if (++polls == 3) held->reset();
                                                return false;
                                              }});
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_GE(polls, 3);
}

TEST_F(FileLockTest, TheWaitEndsAtTheTimeout) {
  const auto held = FileLock::Try(path_);
  const absl::Status status = FileLock::Acquire(path_, absl::Milliseconds(30)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(FileLockTest, TheWaitCanBeCancelled) {
  const auto held = FileLock::Try(path_);
  const absl::Status status =
      FileLock::Acquire(path_, {.timeout = absl::Hours(1), .cancelled = [] { return true; }})
          .status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace muster::base
