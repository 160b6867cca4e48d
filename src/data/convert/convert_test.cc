#include "data/convert/convert.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "data/convert/csv.h"
#include "data/image_testing.h"
#include "data/input/stream.h"
#include "data/open.h"
#include "data/testing.h"
#include "data/tfrecord/example.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ConvertTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  std::vector<SplitSource> Find(const SourceOptions& options = {}) const {
    auto sources = FindSources(from_, options);
    EXPECT_TRUE(sources.ok()) << sources.status();
    return *std::move(sources);
  }

  void Csv(const std::string& text) {
    from_ = Path("table.csv");
    WriteBytes(from_, text);
  }

  // Returns the error of opening or reading the source.
  std::string Mistake(const SourceOptions& options = {}) const {
    const auto sources = FindSources(from_, options);
    if (!sources.ok()) return std::string(sources.status().message());
    for (const SplitSource& source : *sources) {
      for (int64_t i = 0; i < source.examples->size(); ++i) {
        const auto example = source.examples->Example(i);
        if (!example.ok()) return std::string(example.status().message());
      }
    }
    return "";
  }

  static int64_t Label(const std::string& example) {
    FeatureView found;
    EXPECT_TRUE(FindFeatures(example, {"label"}, absl::MakeSpan(&found, 1)).ok());
    int64_t label = -1;
    EXPECT_EQ(ReadInts(found.list, absl::MakeSpan(&label, 1)).value_or(-1), 1);
    return label;
  }

  base::TempDir dir_;
  std::string from_ = dir_.path();
};

TEST_F(ConvertTest, CsvCells) {
  const auto rows = ParseCsv(
      "\xef\xbb\xbf"
      "a,b\r\n\"x, \"\"y\"\"\n\",\n\n5,\"6\"\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_THAT((*rows)[0].cells, ElementsAre("a", "b"));
  EXPECT_THAT((*rows)[1].cells, ElementsAre("x, \"y\"\n", ""));
  EXPECT_THAT((*rows)[2].cells, ElementsAre("5", "6"));
  EXPECT_EQ((*rows)[2].line, 5);
  EXPECT_THAT(ParseCsv("a\n\"b").status().message(), HasSubstr("line 2: a quoted value"));
  EXPECT_THAT(ParseCsv("\"b\"c").status().message(), HasSubstr("unexpected text after"));
  EXPECT_TRUE(ParseCsv("")->empty());
}

TEST_F(ConvertTest, ACsvWithClassesByName) {
  Csv("width,class,height\n1,cat,2.5\n3,ant,-4\n");
  const auto sources = Find();
  ASSERT_EQ(sources.size(), 1u);
  ExampleSource& source = *sources[0].examples;
  EXPECT_EQ(sources[0].split, "train");
  EXPECT_EQ(source.size(), 2);
  EXPECT_THAT(source.class_names(), ElementsAre("ant", "cat"));
  EXPECT_EQ(source.features(), "{features: {type: float, shape: [2]}, label: int64}");
  EXPECT_EQ(source.note(), "'features' are 'width', 'height'; 'label' is 'class'");
  EXPECT_EQ(Label(*source.Example(0)), 1);
  EXPECT_EQ(Label(*source.Example(1)), 0);
}

TEST_F(ConvertTest, ACsvOfNumbers) {
  Csv("1,2,0.5\n3,4,1\n");
  EXPECT_EQ(Find()[0].examples->features(), "{features: {type: float, shape: [2]}, label: float}");
  Csv("a,b\n1,2\n");
  EXPECT_EQ(Find({.columns = {.label = "a"}})[0].examples->note(),
            "'features' are 'b'; 'label' is 'a'");
}

TEST_F(ConvertTest, MistakesInACsvNameTheirLine) {
  Csv("a,b\n1,2\n1\n");
  EXPECT_THAT(Mistake(), AllOf(HasSubstr("table.csv, line 3: has 1 values"), HasSubstr("has 2")));
  Csv("a,b\n1,2\nx,2\n");
  EXPECT_THAT(Mistake(), HasSubstr("line 3: 'a' is 'x', which is not a number"));
  EXPECT_THAT(Mistake({.columns = {.label = "c"}}), HasSubstr("there is no column 'c'"));
  Csv("a,b\n1,\n");
  EXPECT_THAT(Mistake(), HasSubstr("line 2: 'b' is empty"));
  Csv("a,b\n");
  EXPECT_THAT(Mistake(), HasSubstr("no row of values"));
  Csv("");
  EXPECT_THAT(Mistake(), HasSubstr("has no lines"));
  Csv("1\n2\n");
  EXPECT_THAT(Mistake(), HasSubstr("there is only one column"));
}

TEST_F(ConvertTest, FoldersOfImages) {
  for (const char* name : {"train/cat", "train/ant", "test/ant"}) {
    std::filesystem::create_directories(Path(name));
  }
  const std::vector<uint8_t> pixels(12, 100);
  WriteBytes(Path("train/cat/1.PNG"), MakePng(pixels, 2, 2, 3));
  WriteBytes(Path("train/cat/readme.txt"), "not an image");
  WriteBytes(Path("train/ant/1.jpg"), MakeJpeg(pixels, 3, 4, 1));
  WriteBytes(Path("test/ant/1.jpeg"), MakeJpeg(pixels, 2, 2, 3));
  const auto sources = Find();
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].split, "test");
  ExampleSource& train = *sources[1].examples;
  EXPECT_THAT(train.class_names(), ElementsAre("ant", "cat"));
  EXPECT_EQ(Label(*train.Example(0)), 0);
  EXPECT_EQ(Label(*train.Example(1)), 1);
  EXPECT_THAT(train.note(), HasSubstr("different sizes"));
  EXPECT_EQ(train.features(), "{image: {type: jpeg, shape: [3, 4, 3]}, label: int64}");
  WriteBytes(Path("test/ant/2.png"), "no");
  EXPECT_THAT(Mistake(), AllOf(HasSubstr("test/ant/2.png"), HasSubstr("neither a JPEG nor a PNG")));
  std::filesystem::create_directories(Path("test/empty"));
  EXPECT_THAT(Mistake(), HasSubstr("test/empty: has no .jpg"));
}

TEST_F(ConvertTest, ShardsHoldAllExamplesInOrder) {
  std::string text;
  for (int i = 0; i < 10; ++i) absl::StrAppend(&text, i, ",", i, "\n");
  Csv(text);
  const auto sources = Find();
  const ShardOptions options{.folder = Path("out"), .split = "train", .shards = 3};
  std::filesystem::create_directory(Path("out"));
  ASSERT_TRUE(
      WriteShards(*sources[0].examples, options, [](int64_t, int64_t) { return true; }).ok());
  EXPECT_THAT(ShardNames(options),
              ElementsAre("train-00000-of-00003.tfrecord", "train-00001-of-00003.tfrecord",
                          "train-00002-of-00003.tfrecord"));
  DataConfig config{.format = "tfrecord", .path = Path("out")};
  config.record_features = {{"features", {"float", {1}}}, {"label", {"int64", {}}}};
  const auto dataset = OpenDataset(config);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, batch).ok());
  EXPECT_THAT(TargetsOf(batch), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(InputsOf(batch), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(ConvertTest, TrainingReadsTheSameBatchesAsFromIdx) {
  const auto big_endian = [](uint32_t value) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift));
    return bytes;
  };
  const std::string count = big_endian(50);
  std::string images =
      absl::StrCat(absl::string_view("\0\0\x08\x03", 4), count, big_endian(4), big_endian(6));
  std::string labels = absl::StrCat(absl::string_view("\0\0\x08\x01", 4), count);
  for (int i = 0; i < 50 * 24; ++i) images.push_back(static_cast<char>(i * 7));
  for (int i = 0; i < 50; ++i) labels.push_back(static_cast<char>(i % 10));
  WriteBytes(Path("train-images.idx"), images);
  WriteBytes(Path("train-labels.idx"), labels);
  const auto sources = Find();
  std::filesystem::create_directory(Path("out"));
  const ShardOptions options{
      .folder = Path("out"), .split = "train", .shards = 7, .compression = Compression::kGzip};
  ASSERT_TRUE(
      WriteShards(*sources[0].examples, options, [](int64_t, int64_t) { return true; }).ok());
  EXPECT_EQ(sources[0].examples->features(), "{image: {type: uint8, shape: [4, 6]}, label: int64}");
  DataConfig config{.format = "tfrecord", .path = Path("out")};
  config.record_features = {{"image", {"uint8", {4, 6}}}, {"label", {"int64", {}}}};
  const auto idx = OpenDataset({.format = "idx", .path = dir_.path()}).value();
  const auto records = OpenDataset(config).value();
  EXPECT_EQ(records->inputs(), idx->inputs());
  EXPECT_EQ(records->targets(), idx->targets());
  EXPECT_EQ(records->classes(), idx->classes());
  auto from_idx = TrainStream(idx, {.batch_size = 8, .seed = 5}).value();
  auto from_records = TrainStream(records, {.batch_size = 8, .seed = 5}).value();
  for (int i = 0; i < 20; ++i) {
    const Batch one = from_idx->Next().value();
    const Batch other = from_records->Next().value();
    EXPECT_EQ(TargetsOf(one), TargetsOf(other));
    EXPECT_EQ(InputsOf(one), InputsOf(other));
  }
}

TEST_F(ConvertTest, StoppingAndInvalidNumbersLeaveNothing) {
  Csv("1,2\n3,4\n");
  const auto sources = Find();
  ShardOptions options{.folder = Path("out"), .split = "train", .shards = 3};
  std::filesystem::create_directory(Path("out"));
  const auto go_on = [](int64_t, int64_t) { return true; };
  EXPECT_THAT(WriteShards(*sources[0].examples, options, go_on).message(),
              HasSubstr("into 3 shards; choose 1 to 2"));
  options.shards = 1;
  const auto stop = [](int64_t done, int64_t) { return done == 0; };
  EXPECT_EQ(WriteShards(*sources[0].examples, options, stop).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(Path("out")));
}

TEST_F(ConvertTest, UnsupportedSourcesAreRejected) {
  EXPECT_THAT(Mistake(), HasSubstr("has neither IDX files"));
  from_ = Path("absent");
  EXPECT_THAT(Mistake(), HasSubstr("does not exist"));
  from_ = Path("x.txt");
  WriteBytes(from_, "1,2");
  EXPECT_THAT(Mistake(), HasSubstr("expected a .csv file"));
}

TEST_F(ConvertTest, SelectsColumns) {
  Csv("id,age,label,height\nx,1,0,3\ny,2,1,5\n");
  EXPECT_THAT(Mistake(), HasSubstr("'id' is 'x', which is not a number"));
  EXPECT_EQ(Mistake({.columns = {.drop = {"id"}}}), "");
  EXPECT_EQ(Find({.columns = {.drop = {"id", "age"}}})[0].examples->features(),
            "{features: {type: float, shape: [1]}, label: int64}");
  EXPECT_THAT(Find({.columns = {.keep = {"height", "age"}}})[0].examples->note(),
              HasSubstr("'features' are 'height', 'age'; 'label' is 'label'"));
  EXPECT_THAT(Mistake({.columns = {.drop = {"idd"}}}),
              HasSubstr("--drop: there is no column 'idd' (did you mean 'id'?)"));
  EXPECT_THAT(Mistake({.columns = {.drop = {"label"}}}), HasSubstr("'label' is the label"));
  EXPECT_THAT(Mistake({.columns = {.drop = {"id", "age", "height"}}}),
              HasSubstr("no column is left"));
  EXPECT_THAT(Mistake({.columns = {.keep = {"age", "age"}}}), HasSubstr("named twice"));
  Csv("x,1,0\ny,2,1\n");
  EXPECT_EQ(Mistake({.columns = {.keep = {"2"}}}), "");
  EXPECT_THAT(Mistake({.columns = {.keep = {"age"}}}), HasSubstr("from 1 to 3, not 'age'"));
}

TEST_F(ConvertTest, OptionsOfOtherSourcesAreRejected) {
  Csv("a,label\n1,0\n");
  EXPECT_THAT(Mistake({.resize = ImageSize{2, 2}}), HasSubstr("--resize is for folders"));
  from_ = Path("images");
  std::filesystem::create_directories(Path("images/a"));
  WriteBytes(Path("images/a/1.png"), MakePng({0, 0, 0, 0}, 2, 2, 1));
  EXPECT_THAT(Mistake({.columns = {.drop = {"a"}}}), HasSubstr("--drop is for .csv files"));
  EXPECT_THAT(std::string(Find()[0].examples->ComputeScales().status().message()),
              HasSubstr("--normalize is for .csv files"));
}

TEST_F(ConvertTest, ResizedImagesHaveOneSize) {
  from_ = Path("images");
  std::filesystem::create_directories(Path("images/a"));
  WriteBytes(Path("images/a/1.png"), MakePng(std::vector<uint8_t>(6, 9), 2, 3, 1));
  WriteBytes(Path("images/a/2.jpg"), MakeJpeg(std::vector<uint8_t>(64 * 3, 50), 8, 8, 3));
  const auto sources = Find({.resize = ImageSize{4, 5}});
  for (int64_t i = 0; i < 2; ++i) {
    const auto example = sources[0].examples->Example(i);
    ASSERT_TRUE(example.ok()) << example.status();
    FeatureView found;
    ASSERT_TRUE(FindFeatures(*example, {"height"}, absl::MakeSpan(&found, 1)).ok());
    int64_t height = 0;
    EXPECT_EQ(ReadInts(found.list, absl::MakeSpan(&height, 1)).value_or(-1), 1);
    EXPECT_EQ(height, 4);
  }
  EXPECT_EQ(sources[0].examples->features(),
            "{image: {type: png, shape: [4, 5, 3]}, label: int64}");
  EXPECT_EQ(sources[0].examples->note(), "");
}

}  // namespace
}  // namespace muster::data
