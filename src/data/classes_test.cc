#include "data/classes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "data/testing.h"
#include "data/tfrecord/example.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ClassesTest : public testing::Test {
 protected:
  std::vector<SplitSource> Csv(const std::string& text) const {
    const std::string path = dir_.path() + "/table.csv";
    WriteBytes(path, text);
    auto sources = FindSources(path, {});
    EXPECT_TRUE(sources.ok()) << sources.status();
    return *std::move(sources);
  }

  static std::vector<int64_t> Labels(ExampleSource& source) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < source.size(); ++i) {
      const std::string example = source.Example(i).value();
      FeatureView found;
      EXPECT_TRUE(FindFeatures(example, {"label"}, absl::MakeSpan(&found, 1)).ok());
      labels.push_back(-1);
      EXPECT_TRUE(ReadInts(found.list, absl::MakeSpan(&labels.back(), 1)).ok());
    }
    return labels;
  }

  const base::TempDir dir_;
};

TEST_F(ClassesTest, AFileOfClasses) {
  EXPECT_THAT(ReadClasses(dir_.path()).value(), ElementsAre());
  ASSERT_TRUE(WriteClasses(dir_.path(), {"b", "a c"}).ok());
  EXPECT_THAT(ReadClasses(dir_.path()).value(), ElementsAre("b", "a c"));
  for (const char* damaged : {"", "a\n\nb\n", "a\nb\na\n"}) {
    WriteBytes(dir_.path() + "/classes.txt", damaged);
    EXPECT_EQ(ReadClasses(dir_.path()).status().code(), absl::StatusCode::kDataLoss) << damaged;
  }
}

TEST_F(ClassesTest, ExistingClassesKeepTheirNumbers) {
  const auto first = Csv("x,label\n1,dog\n2,cat\n");
  const auto numbered = NumberClasses(first, {}, false);
  ASSERT_TRUE(numbered.ok()) << numbered.status();
  EXPECT_THAT(numbered->classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(Labels(*first[0].examples), ElementsAre(1, 0));

  const auto fewer = Csv("x,label\n1,dog\n2,dog\n");
  ASSERT_TRUE(NumberClasses(fewer, numbered->classes, false).ok());
  EXPECT_THAT(Labels(*fewer[0].examples), ElementsAre(1, 1));

  const auto more = Csv("x,label\n1,ant\n2,dog\n3,bee\n");
  EXPECT_THAT(std::string(NumberClasses(more, numbered->classes, false).status().message()),
              AllOf(HasSubstr("'ant', 'bee'"), HasSubstr("--add-classes")));
  const auto added = NumberClasses(more, numbered->classes, true);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_THAT(added->classes, ElementsAre("cat", "dog", "ant", "bee"));
  EXPECT_THAT(added->added, ElementsAre("ant", "bee"));
  EXPECT_THAT(Labels(*more[0].examples), ElementsAre(2, 1, 3));
}

// A split whose texts all look like numbers is numbered by the classes as the others are.
TEST_F(ClassesTest, NumbersMayBeNamesOfClasses) {
  const std::vector<std::string> classes = {"10", "20", "none"};
  const auto numbers = Csv("x,label\n1,20\n2,10\n");
  ASSERT_TRUE(NumberClasses(numbers, classes, false).ok());
  EXPECT_THAT(Labels(*numbers[0].examples), ElementsAre(1, 0));
  EXPECT_FALSE(NumberClasses(Csv("x,label\n1,0\n2,1\n"), classes, false).ok());
}

TEST_F(ClassesTest, AClassIsOneLine) {
  EXPECT_THAT(
      std::string(NumberClasses(Csv("x,label\n1,\"a\nb\"\n2,c\n"), {}, false).status().message()),
      HasSubstr("line break"));
}

TEST_F(ClassesTest, OneSourceIsDividedTheSameWayEachTime) {
  std::string text = "x,label\n";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, i, ",", i, "\n");
  const std::vector<SplitShare> shares = {{"train", 0.7}, {"valid", 0.2}, {"test", 0.1}};
  std::vector<std::vector<int64_t>> first;
  for (int round = 0; round < 2; ++round) {
    auto parts = Divide(std::move(Csv(text)[0].examples), shares);
    ASSERT_TRUE(parts.ok()) << parts.status();
    std::vector<std::vector<int64_t>> labels;
    for (const SplitSource& part : *parts) labels.push_back(Labels(*part.examples));
    if (round == 0) {
      first = labels;
    } else {
      EXPECT_EQ(labels, first);
    }
  }
  std::vector<int64_t> all;
  for (const auto& labels : first) {
    EXPECT_TRUE(std::is_sorted(labels.begin(), labels.end()));
    all.insert(all.end(), labels.begin(), labels.end());
  }
  EXPECT_THAT((std::vector<size_t>{first[0].size(), first[1].size(), first[2].size()}),
              ElementsAre(70, 20, 10));
  EXPECT_GT(first[0].back(), 75);  // at random, not the first 70
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
}

TEST_F(ClassesTest, ASplitWithoutExamplesIsAnError) {
  const auto parts =
      Divide(std::move(Csv("x,label\n1,2\n3,4\n")[0].examples), {{"train", 0.9}, {"test", 0.1}});
  EXPECT_THAT(std::string(parts.status().message()), HasSubstr("test=0.1 has none"));
}

TEST(ShardNamesTest, DistinguishesSplitsWithACommonPrefix) {
  EXPECT_TRUE(IsShardOf("train-00000-of-00004.tfrecord", "train"));
  EXPECT_TRUE(IsShardOf("train-00000-of-00004.tfrecord.gz", "train"));
  EXPECT_FALSE(IsShardOf("train-extra-00000-of-00004.tfrecord", "train"));
  EXPECT_TRUE(IsShardOf("train-extra-00000-of-00004.tfrecord", "train-extra"));
  EXPECT_FALSE(IsShardOf("train-notes.txt", "train"));
}

}  // namespace
}  // namespace muster::data
