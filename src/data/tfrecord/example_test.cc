#include "data/tfrecord/example.h"

#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/example.pb.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

std::string MakeExample() {
  ExampleBuilder builder;
  builder.AddBytes("image", std::string("\0\xff", 2));
  builder.AddFloats("weights", {1.5f, -0.0f, std::numeric_limits<float>::infinity()});
  builder.AddInts("label", {7, -1, kSmallest, 1 << 20});
  builder.AddInts("empty", {});
  return builder.Finish();
}

FeatureView Find(absl::string_view example, absl::string_view name) {
  FeatureView found;
  EXPECT_TRUE(FindFeatures(example, {name}, absl::MakeSpan(&found, 1)).ok());
  return found;
}

std::vector<int64_t> Ints(const FeatureView& feature) {
  EXPECT_EQ(feature.kind, ListKind::kInt64);
  std::vector<int64_t> values(static_cast<size_t>(ReadInts(feature.list, {}).value()));
  EXPECT_EQ(ReadInts(feature.list, absl::MakeSpan(values)).value(), values.size());
  return values;
}

std::vector<float> Floats(const FeatureView& feature) {
  EXPECT_EQ(feature.kind, ListKind::kFloat);
  std::vector<float> values(static_cast<size_t>(ReadFloats(feature.list, {}).value()));
  EXPECT_EQ(ReadFloats(feature.list, absl::MakeSpan(values)).value(), values.size());
  return values;
}

TEST(ExampleTest, ProtobufReadsOurExamples) {
  tf::Example example;
  ASSERT_TRUE(example.ParseFromString(MakeExample()));
  ASSERT_EQ(example.features().feature_size(), 4);
  const auto& features = example.features().feature();
  EXPECT_EQ(features[0].key(), "image");
  EXPECT_THAT(features[0].value().bytes_list().value(), ElementsAre(std::string("\0\xff", 2)));
  EXPECT_THAT(features[1].value().float_list().value(),
              ElementsAre(1.5f, -0.0f, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(features[2].value().int64_list().value(), ElementsAre(7, -1, kSmallest, 1 << 20));
  EXPECT_TRUE(features[3].value().has_int64_list());
  EXPECT_EQ(example.SerializeAsString(), MakeExample());
}

TEST(ExampleTest, ReadsExamplesWrittenByProtobuf) {
  tf::Example example;
  const auto add = [&](const std::string& name) -> tf::Feature& {
    tf::FeatureEntry& entry = *example.mutable_features()->add_feature();
    entry.set_key(name);
    return *entry.mutable_value();
  };
  for (const char* text : {"a", "", "ccc"}) add("texts").mutable_bytes_list()->add_value(text);
  add("label").mutable_int64_list()->add_value(-5);
  add("none");
  const std::string bytes = example.SerializeAsString();
  EXPECT_THAT(Ints(Find(bytes, "label")), ElementsAre(-5));
  EXPECT_EQ(Find(bytes, "none").kind, ListKind::kNone);
  EXPECT_EQ(Find(bytes, "none").name, "none");
  EXPECT_EQ(Find(bytes, "absent").name, "");
  absl::string_view text;
  EXPECT_EQ(ReadBytes(Find(bytes, "texts").list, absl::MakeSpan(&text, 1)).value(), 1);
  EXPECT_EQ(text, "ccc");  // the last entry of a name wins
}

// An entry for `list`, field `kind` of a Feature.
std::string ExampleWith(int kind, const std::string& list) {
  const auto field = [](int number, const std::string& content) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
           content;
  };
  return field(1, field(1, field(1, "x") + field(2, field(kind, list))));
}

TEST(ExampleTest, PackedUnpackedAndMixed) {
  const std::string one("\x0d\x00\x00\x80\x3f", 5);
  const std::string packed("\x0a\x08\x00\x00\x00\x40\x00\x00\x40\x40", 10);
  EXPECT_THAT(Floats(Find(ExampleWith(2, one + packed + one), "x")), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(Ints(Find(ExampleWith(3, "\x08\x05\x0a\x02\x06\x07\x08\x08"), "x")),
              ElementsAre(5, 6, 7, 8));
  float first = 0;
  EXPECT_EQ(ReadFloats(one + packed, absl::MakeSpan(&first, 1)).value(), 3);
  EXPECT_EQ(first, 1);
}

TEST(ExampleTest, TwoListsInOneFeatureAreRejected) {
  // A damaged bytes_list, then a float_list.
  const std::string feature("\x0a\x05image\x12\x06\x0a\x04\x00\x00\x80\x3f", 15);
  const std::string entry = std::string("\x0a\x01x\x12\x0f", 5) + feature;
  const std::string features = std::string("\x0a\x14", 2) + entry;
  const std::string example = std::string("\x0a\x16", 2) + features;
  FeatureView found;
  const absl::string_view name = "x";
  EXPECT_TRUE(absl::IsDataLoss(FindFeatures(example, {name}, absl::MakeSpan(&found, 1))));
}

TEST(ExampleTest, UnknownFieldsAreSkipped) {
  const std::string example = ExampleWith(3, "\x08\x05\x10\x01");
  const std::string unknown(
      "\x10\x07\x19"
      "12345678"
      "\x25"
      "1234"
      "\x2a\x01z",
      19);
  EXPECT_THAT(Ints(Find(unknown + example + unknown, "x")), ElementsAre(5));
}

TEST(ExampleTest, DamageIsReported) {
  FeatureView found;
  const auto mistake = [&](const std::string& bytes) {
    return std::string(FindFeatures(bytes, {"x"}, absl::MakeSpan(&found, 1)).message());
  };
  EXPECT_THAT(mistake("plain text"), HasSubstr("is not a tf.train.Example"));
  EXPECT_THAT(mistake("\x0a\x7f"), HasSubstr("is not a tf.train.Example"));
  EXPECT_THAT(mistake(std::string("\x00\x00", 2)), HasSubstr("is not a tf.train.Example"));
  EXPECT_THAT(mistake("\x0b\x0c"), HasSubstr("is not a tf.train.Example"));  // a group
  EXPECT_FALSE(ReadFloats("\x0a\x03"
                          "abc",
                          {})
                   .ok());
  EXPECT_FALSE(ReadInts("\x0a\x01\x80", {}).ok());
  EXPECT_FALSE(ReadInts("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", {}).ok());
  EXPECT_FALSE(ReadBytes("\x0a\x02x", {}).ok());
}

// Decodes damaged Examples, and compares the result with Protobuf's.
TEST(ExampleTest, AgreesWithProtobufOnRandomDamage) {
  std::mt19937 random(1);  // the same in every run
  const std::string good = MakeExample();
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    tf::Example oracle;
    const bool fine = oracle.ParseFromString(bytes);
    std::vector<FeatureView> views;
    const absl::Status status = VisitFeatures(bytes, [&](const FeatureView& feature) {
      views.push_back(feature);
      return CountValues(feature).status();
    });
    if (!status.ok()) continue;
    ASSERT_TRUE(fine) << round;
    ++accepted;
    ASSERT_EQ(views.size(), oracle.features().feature_size());
    for (size_t i = 0; i < views.size(); ++i) {
      const auto& entry = oracle.features().feature(static_cast<int>(i));
      ASSERT_EQ(views[i].name, entry.key());
      ASSERT_EQ(static_cast<int>(views[i].kind), static_cast<int>(entry.value().kind_case()));
      if (views[i].kind != ListKind::kInt64) continue;
      ASSERT_THAT(Ints(views[i]), testing::ElementsAreArray(entry.value().int64_list().value()));
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace muster::data
