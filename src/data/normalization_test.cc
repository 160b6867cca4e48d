#include "data/normalization.h"

#include "absl/strings/str_cat.h"
#include "base/testing.h"
#include "data/testing.h"
#include "data/tfrecord/example.h"
#include "gmock/gmock.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;

class NormalizationTest : public testing::Test {
 protected:
  std::vector<SplitSource> Table(const std::string& text) {
    const std::string path = dir_.path() + "/table.csv";
    WriteBytes(path, text);
    auto sources = FindSources(path, {});
    EXPECT_TRUE(sources.ok()) << sources.status();
    return *std::move(sources);
  }
  static std::vector<float> Features(ExampleSource& source, int64_t index, size_t count) {
    const auto example = source.Example(index);
    EXPECT_TRUE(example.ok()) << example.status();
    FeatureView found;
    EXPECT_TRUE(FindFeatures(*example, {"features"}, absl::MakeSpan(&found, 1)).ok());
    std::vector<float> values(count);
    EXPECT_TRUE(ReadFloats(found.list, absl::MakeSpan(values)).ok());
    return values;
  }

  const base::TempDir dir_;
};

TEST_F(NormalizationTest, FeaturesGetMeanZeroAndDeviationOne) {
  // The first column is large beside its deviation, the second constant.
  const auto sources = Table("a,b,label\n1000001,5,0\n1000003,5,1\n");
  const auto scales = Normalize(sources, {});
  ASSERT_TRUE(scales.ok()) << scales.status();
  EXPECT_THAT(*scales, ElementsAre(FeatureScale{"a", 1000002, 1}, FeatureScale{"b", 5, 1}));
  EXPECT_THAT(Features(*sources[0].examples, 0, 2),
              ElementsAre(FloatNear(-1, 1e-6), FloatNear(0, 1e-6)));
  EXPECT_THAT(Features(*sources[0].examples, 1, 2),
              ElementsAre(FloatNear(1, 1e-6), FloatNear(0, 1e-6)));
}

TEST_F(NormalizationTest, TheScalesAreThoseOfTheFirstSplit) {
  std::string text = "a,label\n";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, i, ",0\n");
  auto parts = Divide(std::move(Table(text)[0].examples), {{"train", 0.5}, {"test", 0.5}});
  ASSERT_TRUE(parts.ok());
  const auto scales = Normalize(*parts, {});
  ASSERT_TRUE(scales.ok()) << scales.status();
  EXPECT_NE((*scales)[0].mean, 49.5);
  double sum = 0;
  for (int64_t i = 0; i < 50; ++i) sum += Features(*(*parts)[0].examples, i, 1)[0];
  EXPECT_NEAR(sum, 0, 1e-4);
}

TEST_F(NormalizationTest, ScalesAreKeptAndReused) {
  EXPECT_THAT(ReadNormalization(dir_.path()).value(), IsEmpty());
  const std::vector<FeatureScale> scales = {{"a, \"b\"", 0.1, 1e-300}, {"c", -3, 2}};
  ASSERT_TRUE(WriteNormalization(dir_.path(), scales).ok());
  EXPECT_EQ(ReadNormalization(dir_.path()).value(), scales);
  const auto sources = Table("c,label\n7,0\n");
  const absl::Status other = Normalize(sources, scales).status();
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.message()), HasSubstr("the folder was normalized with"));
  ASSERT_TRUE(Normalize(sources, {{"c", -3, 2}}).ok());
  EXPECT_THAT(Features(*sources[0].examples, 0, 1), ElementsAre(5));
}

TEST_F(NormalizationTest, ADamagedFileIsReported) {
  for (const char* text : {"", "column,mean,deviation\n", "column,mean,deviation\na,1\n",
                           "column,mean,deviation\na,1,0\n", "column,mean,deviation\na,x,1\n"}) {
    WriteBytes(dir_.path() + "/normalization.csv", text);
    EXPECT_TRUE(absl::IsDataLoss(ReadNormalization(dir_.path()).status())) << text;
  }
}

}  // namespace
}  // namespace muster::data
