#include "cli/data/summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using testing::ElementsAre;

TEST(ExampleSummaryTest, DescribesFeatures) {
  ExampleSummary summary;
  for (int64_t i = 0; i < 3; ++i) {
    data::ExampleBuilder builder;
    builder.AddBytes("image", std::string(64, static_cast<char>(200 + i)));
    builder.AddInts("label", {i});
    builder.AddInts("height", {8});
    if (i > 0) builder.AddBytes("name", "cat");
    if (i == 2) builder.AddFloats("height", {8.5f});
    ASSERT_TRUE(summary.Add(builder.Finish()).ok());
  }
  EXPECT_EQ(summary.examples(), 3);
  const auto& features = summary.features();
  ASSERT_EQ(features.size(), 4u);
  const FeatureSummary& image = features.at("image");
  EXPECT_EQ(ExampleSummary::TypeOf(image), "bytes");
  EXPECT_EQ(ExampleSummary::ValuesOf(image), "1 of 64 bytes");
  EXPECT_EQ(ExampleSummary::SampleOf(image), "raw bytes");
  EXPECT_EQ(ExampleSummary::SampleOf(features.at("label")), "0  (0 to 2)");
  EXPECT_EQ(features.at("name").examples, 2);
  EXPECT_EQ(ExampleSummary::SampleOf(features.at("name")), "'cat'");
  EXPECT_EQ(ExampleSummary::TypeOf(features.at("height")), "int64 and others");
  EXPECT_EQ(summary.JobFeatures(), "{image: {type: uint8, shape: [8, 8]}, label: int64}");
  EXPECT_FALSE(summary.Add("nothing of the kind").ok());
}

TEST(ExampleSummaryTest, DoesNotGuessWithoutEvidence) {
  ExampleSummary summary;
  data::ExampleBuilder builder;
  builder.AddFloats("a", {1, 2});
  builder.AddFloats("b", {1, 2});
  builder.AddInts("label", {1});
  ASSERT_TRUE(summary.Add(builder.Finish()).ok());
  EXPECT_EQ(summary.JobFeatures(), "");
}

TEST(DrawImageTest, RawSquares) {
  std::string bytes(64, '\0');
  for (size_t i = 32; i < 64; ++i) bytes[i] = static_cast<char>(255);
  const auto lines = DrawImage(bytes, 80);
  ASSERT_TRUE(lines.has_value());
  EXPECT_THAT(*lines, ElementsAre("", "", "@@@@@@@@", "@@@@@@@@"));
  EXPECT_THAT(*DrawImage(bytes, 4), ElementsAre("", "@@@@"));
  EXPECT_FALSE(DrawImage(std::string(65, '\0'), 80).has_value());
  EXPECT_FALSE(DrawImage(std::string(64, 'x'), 80).has_value());  // a text
  EXPECT_FALSE(DrawImage("\x89PNG\r\n\x1a\n", 80).has_value());
}

}  // namespace
}  // namespace muster::cli
