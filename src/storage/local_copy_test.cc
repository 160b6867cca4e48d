#include "storage/local_copy.h"

#include <sys/stat.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::storage {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class LocalCopyTest : public testing::Test {
 protected:
  static Url At(const std::string& name) { return *ParseUrl("memory://" + name); }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteWhole(**storage_.For(At(name)), At(name), content).ok());
  }
  absl::StatusOr<std::string> Copy(const std::string& name) {
    return LocalCopy(storage_, At(name), cache_.path(),
                     [this](const std::string& line) { said_.push_back(line); });
  }
  static bool IsThere(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
  }

  Storage storage_;
  base::TempDir cache_;
  std::vector<std::string> said_;
};

TEST_F(LocalCopyTest, OnlyChangedFilesAreCopiedAgain) {
  Write("d/a.txt", "one");
  const auto path = Copy("d/a.txt");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*base::ReadFile(*path), "one");
  ASSERT_THAT(said_, SizeIs(1));
  EXPECT_THAT(said_[0], HasSubstr("copying 1 file, 3B, of memory://d/a.txt"));
  Write("d/a.txt", "two");  // same size, and same second
  EXPECT_EQ(*base::ReadFile(*Copy("d/a.txt")), "two");
  EXPECT_THAT(said_, SizeIs(2));
  absl::SleepFor(absl::Milliseconds(2100));  // beyond the resolution of times
  ASSERT_TRUE(Copy("d/a.txt").ok());
  ASSERT_TRUE(Copy("d/a.txt").ok());
  EXPECT_THAT(said_, SizeIs(3));
}

TEST_F(LocalCopyTest, NamesThatLeadOutAreRejected) {
  Write("d/../../../outside", "x");
  EXPECT_THAT(std::string(Copy("d").status().message()), HasSubstr("points outside"));
  EXPECT_TRUE(StaysBelow("a/..b/.c"));
  for (const char* name : {"..", "a/../b", "./a", "/a", "a/."}) EXPECT_FALSE(StaysBelow(name));
}

TEST_F(LocalCopyTest, AFileOfJustThatNameWinsOverAPattern) {
  Write("d/a[1]", "exact");
  Write("d/a1", "matched");
  EXPECT_EQ(*base::ReadFile(*Copy("d/a[1]")), "exact");
  Write("e[1]/x", "in a folder");
  EXPECT_EQ(*base::ReadFile(*Copy("e[1]") + "/x"), "in a folder");
}

TEST_F(LocalCopyTest, AFolderMirrorsTheRemoteOne) {
  Write("d/a", "1");
  Write("d/b/c", "2");
  const std::string path = *Copy("d");
  EXPECT_EQ(*base::ReadFile(path + "/b/c"), "2");
  ASSERT_TRUE((*storage_.For(At("d")))->Delete(At("d/a")).ok());
  EXPECT_EQ(*Copy("d"), path);
  EXPECT_FALSE(IsThere(path + "/a"));
  EXPECT_TRUE(IsThere(path + "/b/c"));
}

TEST_F(LocalCopyTest, APatternTouchesNothingElse) {
  for (const char* name : {"d/train-0", "d/train-1", "d/test-0"}) Write(name, name);
  const std::string train = *Copy("d/train-*");
  EXPECT_THAT(train, HasSubstr("d/train-*"));
  const std::string folder = train.substr(0, train.rfind('/'));
  EXPECT_TRUE(IsThere(folder + "/train-0"));
  EXPECT_FALSE(IsThere(folder + "/test-0"));
  ASSERT_TRUE(Copy("d/test-*").ok());
  EXPECT_TRUE(IsThere(folder + "/train-1"));
  ASSERT_TRUE((*storage_.For(At("d")))->Delete(At("d/train-1")).ok());
  ASSERT_TRUE(Copy("d/train-*").ok());
  EXPECT_FALSE(IsThere(folder + "/train-1"));
  EXPECT_TRUE(IsThere(folder + "/test-0"));
}

TEST_F(LocalCopyTest, NothingAtTheUrlIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Copy("absent").status()));
  EXPECT_THAT(std::string(Copy("d/x-*").status().message()), HasSubstr("no file matches"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LocalCopyTest, ConcurrentCopiesAreSerialized) {
  for (int i = 0; i < 20; ++i) Write(absl::StrCat("d/", i), std::string(10'000, 'x'));
  absl::Mutex mutex;
  int copied = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        EXPECT_TRUE(LocalCopy(storage_, At("d"), cache_.path(), [&](const std::string&) {
                      absl::MutexLock lock(&mutex);
                      ++copied;
                    }).ok());
      });
    }
  }
  EXPECT_GE(copied, 1);
}

TEST(IsRemoteTest, PathsAndFileUrlsAreOfThisMachine) {
  EXPECT_TRUE(IsRemote("gs://b/x"));
  EXPECT_FALSE(IsRemote("file:///x"));
  EXPECT_FALSE(IsRemote("/data/a b#c"));
}

}  // namespace
}  // namespace muster::storage
