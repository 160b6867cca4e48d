#include "storage/copy.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::storage {
namespace {

class CopyTest : public testing::Test {
 protected:
  CopyTest() : files_(**storage_.For(At(""))) {}

  static Url At(const std::string& name) { return *ParseUrl("memory://" + name); }
  CopyPair Pair(const std::string& from, const std::string& to) {
    const auto info = files_.Stat(At(from));
    return {info.ok() ? *info : FileInfo{.url = At(from)}, At(to)};
  }

  Storage storage_;
  FileSystem& files_;
};

TEST_F(CopyTest, CopiesManyFilesAndSkipsThemTheNextTime) {
  std::vector<CopyPair> pairs;
  int64_t bytes = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string from = absl::StrCat("a/", i);
    ASSERT_TRUE(WriteWhole(files_, At(from), std::string(static_cast<size_t>(i * 1000), 'x')).ok());
    pairs.push_back(Pair(from, absl::StrCat("b/", i)));
    bytes += i * 1000;
  }
  CopyResult result = CopyAll(storage_, pairs, {.parallel = 8});
  EXPECT_EQ(result.copied, 50);
  EXPECT_EQ(result.copied_bytes, bytes);
  EXPECT_TRUE(result.failures.empty());
  EXPECT_EQ(*ReadWhole(files_, At("b/49")), std::string(49000, 'x'));
  // The same size is not enough.
  ASSERT_TRUE(WriteWhole(files_, At("b/7"), std::string(7000, 'y')).ok());
  result = CopyAll(storage_, pairs, {.parallel = 8});
  EXPECT_EQ(result.copied, 1);
  EXPECT_EQ(result.skipped, 49);
  EXPECT_EQ(*ReadWhole(files_, At("b/7")), std::string(7000, 'x'));
}

TEST_F(CopyTest, AFailureDoesNotStopOtherFiles) {
  ASSERT_TRUE(WriteWhole(files_, At("a"), "x").ok());
  const CopyResult result = CopyAll(storage_, {Pair("absent", "c"), Pair("a", "b")}, {});
  EXPECT_EQ(result.copied, 1);
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(result.failures[0]));
}

TEST_F(CopyTest, StoppingLeavesNoPartialFile) {
  ASSERT_TRUE(WriteWhole(files_, At("a"), std::string(64 << 20, 'x')).ok());
  const CopyResult result =
      CopyAll(storage_, {Pair("a", "b")}, {.progress = [](int64_t, int) { return false; }});
  EXPECT_TRUE(result.stopped);
  if (result.copied == 0) {
    EXPECT_FALSE(files_.Stat(At("b")).ok());
  }
}

TEST_F(CopyTest, NothingToDo) {
  const CopyResult result = CopyAll(storage_, {}, {});
  EXPECT_EQ(result.copied, 0);
  EXPECT_FALSE(result.stopped);
}

}  // namespace
}  // namespace muster::storage
