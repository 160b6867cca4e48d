#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/testing.h"
#include "data/idx/idx_file.h"
#include "data/idx/mnist.h"
#include "data/open.h"
#include "data/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The header of an IDX file.
std::string Header(int type, const std::vector<uint32_t>& dimensions) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(dimensions.size())};
  for (const uint32_t dimension : dimensions) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(dimension >> shift));
  }
  return bytes;
}

std::string Bytes(const std::vector<int>& values) { return {values.begin(), values.end()}; }

class IdxTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) { WriteBytes(Path(name), bytes); }

  // Writes `count` images in which pixel p of image i is i + p, with the label i % 10.
  void WriteMnist(const std::string& part, int count, bool compressed = false) {
    std::string images = Header(8, {static_cast<uint32_t>(count), 28, 28});
    std::string labels = Header(8, {static_cast<uint32_t>(count)});
    for (int i = 0; i < count; ++i) {
      for (int p = 0; p < 784; ++p) images.push_back(static_cast<char>(i + p));
      labels.push_back(static_cast<char>(i % 10));
    }
    Write(part + "-images-idx3-ubyte" + (compressed ? ".gz" : ""),
          compressed ? Gzip(images) : images);
    Write(part + "-labels-idx1-ubyte" + (compressed ? ".gz" : ""),
          compressed ? Gzip(labels) : labels);
  }

  absl::StatusOr<std::shared_ptr<const Dataset>> Open(const std::string& format,
                                                      const std::string& split = "train",
                                                      int64_t examples = 0) const {
    return OpenDataset(
        {.format = format, .path = dir_.path(), .split = split, .examples = examples});
  }

  std::string Mistake(const std::string& bytes) {
    Write("x", bytes);
    const auto file = IdxFile::Open(Path("x"));
    EXPECT_FALSE(file.ok());
    EXPECT_THAT(file.status().message(), HasSubstr(Path("x")));
    return std::string(file.status().message());
  }

  base::TempDir dir_;
};

TEST_F(IdxTest, ReadsMnistPlainAndCompressed) {
  WriteMnist("train", 20);
  WriteMnist("t10k", 5, /*compressed=*/true);
  const auto train = Open("mnist");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 20);
  EXPECT_EQ((*train)->classes(), 10);
  EXPECT_EQ((*train)->inputs(), (Feature{base::DType::kFloat32, {1, 28, 28}}));
  EXPECT_EQ((*train)->targets(), (Feature{base::DType::kInt64, {}}));
  const auto test = Open("mnist", "test");
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->size(), 5);
  for (const auto& dataset : {*train, *test}) {
    Batch batch;
    ASSERT_TRUE(dataset->Read({3, 0, 3}, batch).ok());
    EXPECT_EQ(batch.inputs.shape, (base::Shape{3, 1, 28, 28}));
    EXPECT_EQ(batch.targets.shape, (base::Shape{3}));
    EXPECT_THAT(TargetsOf(batch), ElementsAre(3, 0, 3));
    EXPECT_FLOAT_EQ(InputsOf(batch)[0], (3 / 255.0f - 0.1307f) / 0.3081f);
    EXPECT_FLOAT_EQ(InputsOf(batch)[784 + 255], (1 - 0.1307f) / 0.3081f);
  }
}

TEST_F(IdxTest, MissingFilesNameTheRemedy) {
  const auto missing = Open("mnist");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(),
              HasSubstr(absl::StrCat("`muster data fetch mnist --to ", dir_.path(), "`")));
  WriteMnist("train", 2);
  std::filesystem::remove(Path("train-labels-idx1-ubyte"));
  EXPECT_THAT(Open("mnist").status().message(), HasSubstr("muster data fetch mnist"));
  EXPECT_THAT(Open("mnist", "valid").status().message(), HasSubstr("it has train and test"));
  EXPECT_THAT(Open("idx").status().message(), HasSubstr("there is no"));
}

TEST_F(IdxTest, ExamplesLimitsWhatIsUsed) {
  WriteMnist("train", 20);
  EXPECT_EQ((*Open("mnist", "train", 7))->size(), 7);
  EXPECT_EQ((*Open("mnist", "train", 70))->size(), 20);
  Batch batch;
  EXPECT_EQ((*Open("mnist", "train", 7))->Read({7}, batch).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE((*Open("mnist"))->Read({-1}, batch).ok());
}

TEST_F(IdxTest, OtherFilesAreNotMnist) {
  Write("train-images-idx3-ubyte", Header(8, {1, 2, 2}) + Bytes({0, 51, 102, 255}));
  Write("train-labels-idx1-ubyte", Header(8, {1}) + Bytes({3}));
  EXPECT_THAT(Open("mnist").status().message(), HasSubstr("'format: idx' reads other"));
  const auto dataset = Open("idx");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->classes(), 4);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0}, batch).ok());
  EXPECT_THAT(InputsOf(batch), ElementsAre(0.0f, 51 / 255.0f, 102 / 255.0f, 1.0f));
}

TEST_F(IdxTest, AnyPairWithItsTypes) {
  // Two examples of three int16, with a fraction each.
  Write("a-images.idx", Header(0x0b, {2, 3}) + Bytes({0, 1, 0, 2, 0xff, 0xff, 1, 0, 0, 4, 0, 5}));
  Write("a-labels.idx.gz", Gzip(Header(0x0d, {2}) + Bytes({0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0})));
  const auto dataset = Open("idx", "a");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->inputs(), (Feature{base::DType::kInt16, {3}}));
  EXPECT_EQ((*dataset)->targets(), (Feature{base::DType::kFloat32, {1}}));
  EXPECT_EQ((*dataset)->classes(), 0);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({1, 0}, batch).ok());
  const auto* values = batch.inputs.as<int16_t>();
  EXPECT_THAT(std::vector<int>(values, values + 6), ElementsAre(256, 4, 5, 1, 2, -1));
  EXPECT_EQ(batch.targets.as<float>()[0], -2.0f);
  EXPECT_EQ(batch.targets.as<float>()[1], 1.0f);
}

TEST_F(IdxTest, EveryElementType) {
  const std::vector<std::pair<int, base::DType>> types = {
      {0x08, base::DType::kUint8}, {0x09, base::DType::kInt8},    {0x0b, base::DType::kInt16},
      {0x0c, base::DType::kInt32}, {0x0d, base::DType::kFloat32}, {0x0e, base::DType::kFloat64}};
  for (const auto& [code, dtype] : types) {
    Write("x",
          Header(code, {1, 2}) + std::string(static_cast<size_t>(2 * base::SizeOf(dtype)), '\0'));
    const auto file = IdxFile::Open(Path("x"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->dtype(), dtype);
    EXPECT_EQ((*file)->shape(), base::Shape{2});
  }
}

TEST_F(IdxTest, LargeFilesAreReadOnDemand) {
  WriteMnist("train", 30);
  const std::string path = Path("train-images-idx3-ubyte");
  const auto memory = IdxFile::Open(path).value();
  const auto disk = IdxFile::Open(path, {.memory = 0}).value();
  std::string one(784, '\0');
  std::string other(784, '\0');
  for (const int64_t i : {0, 29, 7}) {
    ASSERT_TRUE(memory->Read(i, 1, one.data()).ok());
    ASSERT_TRUE(disk->Read(i, 1, other.data()).ok());
    EXPECT_EQ(one, other);
  }
  std::filesystem::resize_file(path, 1000);
  EXPECT_EQ(disk->Read(29, 1, other.data()).code(), absl::StatusCode::kDataLoss);
}

TEST_F(IdxTest, HostileHeaders) {
  EXPECT_THAT(Mistake(""), HasSubstr("is not an IDX file"));
  EXPECT_THAT(Mistake("<html>not found</html>"), HasSubstr("is not an IDX file"));
  EXPECT_THAT(Mistake(Header(0x0a, {1})), HasSubstr("element type 0x0a"));
  EXPECT_THAT(Mistake(Header(8, {})), HasSubstr("0 dimensions"));
  EXPECT_THAT(Mistake(Header(8, {1, 1, 1, 1, 1, 1, 1, 1, 1})), HasSubstr("9 dimensions"));
  EXPECT_THAT(Mistake(Header(8, {1, 2}).substr(0, 10)), HasSubstr("its header is truncated"));
  EXPECT_THAT(Mistake(Header(8, {1, 0})), HasSubstr("no elements"));
  const uint32_t huge = 0xffffffff;
  EXPECT_THAT(Mistake(Header(0x0e, {huge, huge, huge, huge, huge, huge, huge, huge})),
              HasSubstr("larger than 1 GiB"));
  EXPECT_THAT(Mistake(Header(8, {huge, 1 << 30})), HasSubstr("larger than 64 TiB"));
  EXPECT_THAT(Mistake(Header(8, {huge})), HasSubstr("declares 4294967295 examples of 1 bytes"));
  EXPECT_THAT(Mistake(Header(8, {3, 2}) + "12345"), HasSubstr("6 bytes in all, but 5 follow"));
  EXPECT_THAT(Mistake(Header(8, {3, 2}) + "1234567"), HasSubstr("but 7 follow"));
}

TEST_F(IdxTest, HostileCompressedFiles) {
  const auto mistake = [&](const std::string& bytes) {
    Write("y.gz", bytes);
    return std::string(IdxFile::Open(Path("y")).status().message());
  };
  EXPECT_THAT(mistake("plain"), HasSubstr("damaged"));
  EXPECT_THAT(mistake(Gzip("")), HasSubstr("is not an IDX file"));
  const std::string good = Gzip(Header(8, {3, 2}) + "123456");
  EXPECT_THAT(mistake(good.substr(0, good.size() - 3)), HasSubstr("truncated"));
  EXPECT_THAT(mistake(Gzip(Header(8, {3, 2}) + "12345")), HasSubstr("but 5 follow"));
  EXPECT_THAT(mistake(Gzip(Header(8, {3, 2}) + "1234567")), HasSubstr("more than the 6 bytes"));
  EXPECT_THAT(mistake(Gzip(Header(8, {0xffffffff, 1000}))), HasSubstr("decompress it with gunzip"));
  // Allocates no more memory than there is data, whatever the header announces.
  EXPECT_THAT(mistake(Gzip(Header(8, {4'000'000'000}) + "12")), HasSubstr("but 2 follow"));
}

TEST_F(IdxTest, OtherFileTypesAreRejected) {
  ASSERT_EQ(::mkfifo(Path("f").c_str(), 0600), 0);
  EXPECT_THAT(IdxFile::Open(Path("f")).status().message(), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo(Path("g.gz").c_str(), 0600), 0);
  EXPECT_THAT(IdxFile::Open(Path("g")).status().message(), HasSubstr("not a regular file"));
  std::filesystem::create_directory(Path("d"));
  EXPECT_THAT(IdxFile::Open(Path("d")).status().message(), HasSubstr("not a regular file"));
}

TEST_F(IdxTest, ImagesAndLabelsMustFit) {
  WriteMnist("train", 20);
  Write("train-labels-idx1-ubyte", Header(8, {19}) + std::string(19, '\0'));
  EXPECT_THAT(Open("mnist").status().message(),
              testing::AllOf(HasSubstr("has 20 examples"), HasSubstr("has 19")));
  Write("train-labels-idx1-ubyte", Header(8, {20}) + std::string(19, '\0') + "\x0a");
  EXPECT_THAT(Open("mnist").status().message(),
              HasSubstr("the target of example 19 is 10; targets are whole numbers from 0 to 9"));
  Write("e-images.idx", Header(8, {0, 2}));
  Write("e-labels.idx", Header(8, {0}));
  EXPECT_THAT(Open("idx", "e").status().message(), HasSubstr("has no examples"));
  Write("n-images.idx", Header(8, {1, 1}) + "x");
  Write("n-labels.idx", Header(9, {1}) + "\xff");
  EXPECT_THAT(Open("idx", "n").status().message(), HasSubstr("the target of example 0 is -1"));
}

TEST_F(IdxTest, Sections) {
  EXPECT_THAT(OpenDataset({.format = "mnits"}).status().message(),
              HasSubstr("did you mean 'mnist'"));
  EXPECT_THAT(OpenDataset({.format = "mnist"}).status().message(), HasSubstr("needs 'path'"));
  EXPECT_FALSE(Open("idx", "../train").ok());
  EXPECT_FALSE(Open("idx", "").ok());
}

}  // namespace
}  // namespace muster::data
