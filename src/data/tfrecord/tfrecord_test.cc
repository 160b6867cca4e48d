#include "data/tfrecord/tfrecord.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "data/config.h"
#include "data/image_testing.h"
#include "data/input/stream.h"
#include "data/open.h"
#include "data/testing.h"
#include "data/tfrecord/record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TfRecordTest : public testing::Test {
 protected:
  TfRecordTest() {
    config_.format = "tfrecord";
    config_.path = dir_.path();
    config_.record_features = {{"image", {"uint8", {2, 2}}}, {"label", {"int64", {}}}};
  }

  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  void Write(const std::string& name, const std::vector<std::string>& records,
             Compression compression = Compression::kNone) {
    auto writer = RecordWriter::Open(Path(name), compression);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const std::string& record : records) ASSERT_TRUE(writer->Write(record).ok());
    ASSERT_TRUE(writer->Close().ok());
  }

  // Writes examples from `first` on whose pixels and label are their number.
  static std::vector<std::string> Numbered(int64_t first, int64_t count) {
    std::vector<std::string> records;
    ExampleBuilder builder;
    for (int64_t i = first; i < first + count; ++i) {
      builder.AddInts("label", {i});
      builder.AddInts("more", {1, 2, 3});
      builder.AddBytes("image", std::string(4, static_cast<char>(i)));
      records.push_back(builder.Finish());
    }
    return records;
  }

  // Writes one record with that feature and a label.
  template <typename Add>
  void WriteOne(const std::string& name, Add add) {
    ExampleBuilder builder;
    builder.AddInts("label", {0});
    add(builder);
    Write(name, {builder.Finish()});
  }

  absl::StatusOr<std::shared_ptr<const Dataset>> Open() const { return OpenDataset(config_); }
  std::string Mistake() const {
    const auto dataset = Open();
    EXPECT_FALSE(dataset.ok());
    return std::string(dataset.status().message());
  }

  base::TempDir dir_;
  DataConfig config_;
};

TEST_F(TfRecordTest, ShardsAreOneDataSetInOrder) {
  Write("train-00000-of-00002", Numbered(0, 3));
  Write("train-00001-of-00002", Numbered(3, 4), Compression::kGzip);
  Write("train-00002-of-00002", Numbered(7, 1), Compression::kZlib);
  Write("test.tfrecord", Numbered(1, 1));
  Write("trainer", {"not an example"});
  for (const int64_t memory : {DataConfig().memory, int64_t{300}, int64_t{0}}) {
    config_.memory = memory;  // fits one decompressed shard, or none
    const auto dataset = Open();
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->size(), 8);
    EXPECT_EQ((*dataset)->classes(), 8);
    EXPECT_EQ((*dataset)->inputs(), (Feature{base::DType::kFloat32, {1, 2, 2}}));
    EXPECT_EQ((*dataset)->targets(), (Feature{base::DType::kInt64, {}}));
    EXPECT_THAT((*dataset)->notes(), IsEmpty());
    Batch batch;
    ASSERT_TRUE((*dataset)->Read({7, 0, 3, 2}, batch).ok());
    EXPECT_THAT(TargetsOf(batch), ElementsAre(7, 0, 3, 2));
    EXPECT_EQ(InputsOf(batch)[0], 7 / 255.0f);
    EXPECT_EQ(InputsOf(batch)[15], 2 / 255.0f);
  }
  config_.split = "test";
  EXPECT_EQ((*Open())->size(), 1);
}

TEST_F(TfRecordTest, SplitsByMapGlobAndFolder) {
  Write("a-1.tfrecord", Numbered(0, 2));
  Write("a-2.tfrecord", Numbered(2, 2));
  Write("b.tfrecord", Numbered(0, 1));
  EXPECT_THAT(Mistake(), HasSubstr("has no file of the split 'train'"));
  config_.path = Path("a-*");
  EXPECT_EQ((*Open())->size(), 4);
  config_.split = "test";
  EXPECT_THAT(Mistake(), HasSubstr("write 'path: {train: "));
  config_.paths = {{"train", Path("a-*")}, {"test", Path("b.tfrecord")}};
  EXPECT_EQ((*Open())->size(), 1);
  config_.split = "valid";
  EXPECT_THAT(Mistake(), HasSubstr("has no split 'valid'"));
  config_.paths = {{"valid", Path("c-*")}};
  EXPECT_THAT(Mistake(), HasSubstr("no file matches " + Path("c-*")));
}

TEST_F(TfRecordTest, ExamplesLimitsWhatIsUsed) {
  Write("train-0", Numbered(0, 3));
  Write("train-1", Numbered(3, 3));
  Write("train-2", {"damaged beyond what is read"});
  config_.examples = 4;
  EXPECT_EQ((*Open())->size(), 4);
  EXPECT_EQ((*Open())->classes(), 4);
}

TEST_F(TfRecordTest, TasksShareAnEpochAndResumeWhereTheyWere) {
  Write("train-0", Numbered(0, 30));
  Write("train-1", Numbered(30, 20), Compression::kGzip);
  const auto dataset = Open().value();
  std::vector<int64_t> seen;
  for (const int rank : {0, 1}) {
    auto stream = TrainStream(dataset, {.batch_size = 5, .rank = rank, .world = 2, .seed = 3});
    ASSERT_TRUE(stream.ok());
    for (int i = 0; i < 5; ++i) {
      const Batch batch = (*stream)->Next().value();
      for (const int64_t target : TargetsOf(batch)) seen.push_back(target);
    }
    ASSERT_TRUE((*stream)->Seek(2).ok());
    const Batch again = (*stream)->Next().value();
    const auto first = static_cast<ptrdiff_t>(rank * 25 + 10);
    EXPECT_EQ(TargetsOf(again),
              std::vector<int64_t>(seen.begin() + first, seen.begin() + first + 5));
  }
  std::sort(seen.begin(), seen.end());
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_F(TfRecordTest, ImagesAreDecoded) {
  const std::vector<uint8_t> pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 51, 51, 51};
  WriteOne("train-0",
           [&](ExampleBuilder& builder) { builder.AddBytes("image", MakePng(pixels, 2, 2, 3)); });
  config_.record_features["image"] = {"jpeg", {2, 2, 3}};  // either format does
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->inputs(), (Feature{base::DType::kFloat32, {3, 2, 2}}));
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0}, batch).ok());
  EXPECT_THAT(InputsOf(batch), ElementsAre(1, 0, 0, 0.2f, 0, 1, 0, 0.2f, 0, 0, 1, 0.2f));
  config_.record_features["image"] = {"png", {2, 3, 3}};
  EXPECT_THAT(Mistake(), AllOf(HasSubstr(Path("train-0") + ", record 0 at byte 0: feature 'image'"),
                               HasSubstr("is an image of 2 x 2"), HasSubstr("declares 2 x 3"),
                               HasSubstr("scale them")));
  config_.record_features["image"] = {"png", {2, 2, 2}};
  EXPECT_THAT(Mistake(), HasSubstr("[height, width, 3]"));
}

TEST_F(TfRecordTest, RawPixelsWithChannelsLastBecomeChannelsFirst) {
  WriteOne("train-0", [&](ExampleBuilder& builder) {
    builder.AddBytes("image", std::string("\xff\0\0\xff\0\0", 6));
  });
  config_.record_features["image"] = {"uint8", {1, 2, 3}};
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->inputs(), (Feature{base::DType::kFloat32, {3, 1, 2}}));
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0}, batch).ok());
  EXPECT_THAT(InputsOf(batch), ElementsAre(1, 1, 0, 0, 0, 0));
  config_.record_features["image"] = {"uint8", {3, 1, 2}};
  EXPECT_EQ((*Open())->inputs(), (Feature{base::DType::kFloat32, {3, 1, 2}}));
}

TEST_F(TfRecordTest, FloatsAndIds) {
  ExampleBuilder builder;
  builder.AddFloats("x", {1.5f, 2.5f});
  builder.AddFloats("y", {-3});
  builder.AddInts("ids", {4, 5});
  Write("train-0", {builder.Finish()});
  config_.record_features = {{"x", {"float", {2}}}, {"y", {"float", {}}}};
  config_.target = "y";
  Batch batch;
  ASSERT_TRUE((*Open())->Read({0}, batch).ok());
  EXPECT_THAT(InputsOf(batch), ElementsAre(1.5f, 2.5f));
  EXPECT_EQ((*Open())->targets(), (Feature{base::DType::kFloat32, {1}}));
  EXPECT_EQ((*Open())->classes(), 0);
  config_.record_features = {{"ids", {"int64", {2}}}, {"y", {"float", {}}}};
  config_.vocabulary = 6;
  EXPECT_EQ((*Open())->vocabulary(), 6);
  config_.vocabulary = 5;
  EXPECT_THAT(Mistake(), AllOf(HasSubstr("feature 'ids' is 5"), HasSubstr("from 0 to 4")));
}

TEST_F(TfRecordTest, MistakesNameFileRecordAndFeature) {
  std::vector<std::string> records = Numbered(0, 2);
  ExampleBuilder builder;
  builder.AddInts("label", {1});
  records.push_back(builder.Finish());
  Write("train-0", records);
  const auto dataset = Open().value();
  Batch batch;
  EXPECT_THAT(
      dataset->Read({2}, batch).message(),
      AllOf(HasSubstr(Path("train-0") + ", record 2 at byte "),
            HasSubstr("feature 'image' is not in the record"), HasSubstr("muster data inspect")));
  config_.record_features["image"] = {"uint8", {2, 3}};
  EXPECT_THAT(Mistake(), AllOf(HasSubstr("has 4 bytes"), HasSubstr("[2, 3], which is 6")));
  config_.record_features["image"] = {"float", {4}};
  EXPECT_THAT(Mistake(), AllOf(HasSubstr("has bytes values"), HasSubstr("write 'type: uint8'")));
  config_.record_features["image"] = {"jpeg", {2, 2}};
  EXPECT_THAT(Mistake(), HasSubstr("neither a JPEG nor a PNG"));
  config_.record_features["image"] = {"uint8", {2, 2}};
  config_.classes = 1;
  EXPECT_THAT(
      Open().value()->Read({1}, batch).message(),
      AllOf(HasSubstr("record 1"), HasSubstr("feature 'label' is 1"), HasSubstr("from 0 to 0")));
}

TEST_F(TfRecordTest, Sections) {
  Write("train-0", Numbered(0, 1));
  const auto with = [&](std::map<std::string, RecordFeature> features) {
    config_.record_features = std::move(features);
    return Mistake();
  };
  EXPECT_THAT(with({}), HasSubstr("needs 'features'"));
  EXPECT_THAT(with({{"label", {"int64", {}}}}), HasSubstr("names 1"));
  EXPECT_THAT(with({{"image", {"uint8", {4}}}, {"lable", {"int64", {}}}}),
              AllOf(HasSubstr("has no 'label'"), HasSubstr("did you mean 'lable'")));
  EXPECT_THAT(with({{"image", {"unit8", {4}}}, {"label", {"int64", {}}}}),
              HasSubstr("did you mean 'uint8'"));
  EXPECT_THAT(with({{"image", {"uint8", {}}}, {"label", {"int64", {}}}}),
              HasSubstr("lacks 'shape'"));
  EXPECT_THAT(with({{"image", {"uint8", {1 << 30, 1 << 30}}}, {"label", {"int64", {}}}}),
              HasSubstr("at most 1 GiB"));
  EXPECT_THAT(with({{"image", {"uint8", {4}}}, {"label", {"uint8", {1}}}}),
              HasSubstr("targets are int64"));
  Write("train-0", {});
  EXPECT_THAT(with({{"image", {"uint8", {4}}}, {"label", {"int64", {}}}}),
              HasSubstr("holds no example"));
}

TEST_F(TfRecordTest, DamageFailsOrIsSkipped) {
  Write("train-0", Numbered(0, 4));
  std::string bytes = base::ReadFile(Path("train-0")).value();
  const size_t record = bytes.size() / 4;
  bytes[record + 20] ^= 1;  // the data of record 1
  bytes[3 * record] ^= 1;   // the length of record 3
  WriteBytes(Path("train-0"), bytes);
  EXPECT_THAT(Mistake(), AllOf(HasSubstr("record 3 at byte"), HasSubstr("on_error: skip")));
  config_.on_error = "skip";
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 2);
  EXPECT_THAT((*dataset)->notes(), ElementsAre(AllOf(HasSubstr("1 damaged records and"),
                                                     HasSubstr("record 1 at byte"))));
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0, 1}, batch).ok());
  EXPECT_THAT(TargetsOf(batch), ElementsAre(0, 2));
  config_.on_error = "fail";
  bytes.resize(3 * record);
  WriteBytes(Path("train-0"), bytes);
  config_.classes = 10;
  EXPECT_THAT(
      Open().value()->Read({1}, batch).message(),
      AllOf(HasSubstr("record 1 at byte"), HasSubstr("checksum"), HasSubstr("on_error: skip")));
}

TEST(DataConfigTest, ReadsTheSection) {
  const auto config = ParseDataConfig(nlohmann::json::parse(
      R"({"format": "tfrecord", "path": {"train": "/a", "test": "/b"}, "target": "y",
          "features": {"x": {"type": "uint8", "shape": [28, 28]}, "y": "int64"}})"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->paths.at("test"), "/b");
  EXPECT_EQ(config->record_features.at("x").shape, (base::Shape{28, 28}));
  EXPECT_EQ(config->record_features.at("y").type, "int64");
  EXPECT_EQ(ParseDataConfig({{"format", "synthetic"}, {"features", 5}})->features, 5);
  for (const char* wrong : {R"({"path": 5})", R"({"features": {"x": 5}})", R"([])",
                            R"({"features": {"x": {"shape": "big"}}})", R"({"path": {"a": 1}})"}) {
    EXPECT_FALSE(ParseDataConfig(nlohmann::json::parse(wrong)).ok()) << wrong;
  }
}

}  // namespace
}  // namespace muster::data
