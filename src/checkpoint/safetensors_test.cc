#include "checkpoint/safetensors.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/testing.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file of that header text and `data` bytes after it.
std::string FileOf(const std::string& json, int64_t data) {
  std::string file;
  for (size_t length = json.size(), i = 0; i < 8; ++i, length >>= 8) {
    file.push_back(static_cast<char>(length & 0xff));
  }
  return absl::StrCat(file, json, std::string(static_cast<size_t>(data), 'd'));
}

absl::StatusOr<SafetensorsHeader> Parse(const std::string& json, int64_t data) {
  const std::string file = FileOf(json, data);
  return ParseHeader(file, static_cast<int64_t>(file.size()));
}

// One tensor "w" of those fields.
std::string Tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return absl::StrCat(R"({"w":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)",
                      offsets, "}}");
}

TEST(SafetensorsTest, HeaderReadsBackAndIsAligned) {
  const std::vector<base::TensorSpec> specs = SomeWeights();
  const auto header = WriteHeader(specs, {{"format", "pt"}});
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->size() % 8, 0u);
  int64_t bytes = 0;
  for (const base::TensorSpec& spec : specs) bytes += spec.bytes();
  const auto parsed = ParseHeader(*header, static_cast<int64_t>(header->size()) + bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->data_start, static_cast<int64_t>(header->size()));
  EXPECT_EQ(parsed->metadata, TorchMetadata());
  ASSERT_EQ(parsed->tensors.size(), specs.size());
  int64_t place = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(parsed->tensors[i].spec, specs[i]);
    EXPECT_EQ(parsed->tensors[i].begin, place);
    place += specs[i].bytes();
  }
}

TEST(SafetensorsTest, ReadsFilesOfOtherTools) {
  // The entries in any order, a scalar, padding, names with escapes.
  const auto header = Parse(R"({"b":{"data_offsets":[4,12],"shape":[],"dtype":"I64"},)"
                            R"("a\u00e9\n":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}}   )",
                            12);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].spec,
            (base::TensorSpec{"a\xc3\xa9\n", base::DType::kFloat16, {2, 1}}));
  EXPECT_EQ(header->tensors[1].spec, (base::TensorSpec{"b", base::DType::kInt64, {}}));
  EXPECT_TRUE(Parse("{}", 0).ok());
}

TEST(SafetensorsTest, RejectsDamagedLengths) {
  EXPECT_TRUE(absl::IsDataLoss(ParseHeader("", 0).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseHeader("1234567", 7).status()));
  for (const unsigned char last : {0x00, 0x01, 0x7f, 0xff}) {
    std::string file = FileOf("{}", 0);
    file[6] = file[7] = static_cast<char>(last);
    file[5] = '\x01';
    const auto status = ParseHeader(file, static_cast<int64_t>(file.size())).status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("header would be"));
  }
  // A huge header in a sparse file is rejected before anything is read.
  const std::string huge = FileOf("{}", 0).replace(0, 8, std::string("\0\0\0\0\1\0\0\0", 8));
  EXPECT_TRUE(absl::IsDataLoss(ParseHeader(huge, int64_t{1} << 40).status()));
}

TEST(SafetensorsTest, RejectsMalformedHeaders) {
  const std::string w = R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::vector<std::string> wrong = {
      std::string("[]"),
      std::string("null"),
      std::string(" {}"),
      std::string("{"),
      std::string("{} x"),
      std::string("\xff\xfe"),
      std::string("{\"\xff\":1}"),
      "{" + w + "," + w + "}",
      R"({"w":1})",
      R"({"w":[]})",
      R"({"w":"x"})",
      R"({"w":null})",
      R"({"w":{}})",
      R"({"w":{"dtype":"F32","shape":[1]}})",
      R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
      R"({"w":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
      R"({"w":{"dtype":{},"shape":[1],"data_offsets":[0,4]}})",
      R"({"__metadata__":{"a":1},)" + w + "}",
      R"({"__metadata__":{"a":{}},)" + w + "}",
      R"({"__metadata__":[],)" + w + "}",
      "{\"w\":" + std::string(200'000, '['),
      "{\"w\":" + std::string(200'000, '{')};
  for (const std::string& json : wrong) {
    const auto status = Parse(json, 4).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << json.substr(0, 80) << " " << status;
  }
}

TEST(SafetensorsTest, RejectsImpossibleTensors) {
  const std::string max = "9223372036854775807";
  const std::vector<std::string> wrong = {
      Tensor("F8", "[1]", "[0,4]"),
      Tensor("F32", "[-1]", "[0,4]"),
      Tensor("F32", "[1.5]", "[0,4]"),
      Tensor("F32", "[1e30]", "[0,4]"),
      Tensor("F32", "[1]", "[0]"),
      Tensor("F32", "[1]", "[0,4,8]"),
      Tensor("F32", "[1]", "[4,0]"),
      Tensor("F32", "[1]", "[0,8]"),
      Tensor("F32", "[2]", "[0,4]"),
      Tensor("F32", "[1]", "[-4,0]"),
      Tensor("F32", "1", "[0,4]"),
      Tensor("F32", absl::StrCat("[", max, "]"), "[0,4]"),
      Tensor("U8", absl::StrCat("[", max, ",", max, ",0]"), "[0,0]"),
      Tensor("F32", "[18446744073709551616]", "[0,4]"),
      Tensor("F32", "[18446744073709551615]", "[0,4]"),
      Tensor("F32", "[1]", absl::StrCat("[", max, ",", max, "]"))};
  for (const std::string& json : wrong) {
    EXPECT_TRUE(absl::IsDataLoss(Parse(json, 4).status())) << json;
  }
}

TEST(SafetensorsTest, EveryByteBelongsToOneTensor) {
  const auto two = [](const char* first, const char* second) {
    return absl::StrCat(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)", first,
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)", second, "}}");
  };
  EXPECT_TRUE(Parse(two("[4,8]", "[0,4]"), 8).ok());
  EXPECT_THAT(std::string(Parse(two("[0,4]", "[2,6]"), 8).status().message()),
              HasSubstr("overlap"));
  EXPECT_THAT(std::string(Parse(two("[0,4]", "[0,4]"), 8).status().message()),
              HasSubstr("overlap"));
  EXPECT_THAT(std::string(Parse(two("[0,4]", "[6,10]"), 10).status().message()), HasSubstr("gap"));
  EXPECT_THAT(std::string(Parse(two("[0,4]", "[4,8]"), 7).status().message()),
              HasSubstr("truncated"));
  EXPECT_FALSE(Parse(two("[0,4]", "[4,8]"), 9).ok());
}

TEST(SafetensorsTest, WritingRejectsUnreadableContent) {
  const base::TensorSpec w{"w", base::DType::kFloat32, {1}};
  for (const auto& specs : std::vector<std::vector<base::TensorSpec>>{
           {w, w},
           {{"__metadata__", base::DType::kFloat32, {1}}},
           {{"\xff", base::DType::kFloat32, {1}}},
           {{"w", base::DType::kFloat32, {-1}}},
           {{"w", base::DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}}},
           {{"v", base::DType::kUint8, {INT64_MAX}}, w}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(WriteHeader(specs, {}).status())) << specs[0].name;
  }
}

TEST(SafetensorsTest, AWholeFileIsAlignedAndReadsBack) {
  const base::TempDir dir;
  const std::string path = dir.path() + "/all.safetensors";
  std::vector<Bytes> content;
  std::vector<absl::Span<const std::byte>> spans;
  for (const base::TensorSpec& spec : SomeWeights()) content.push_back(BytesOf(spec));
  for (const Bytes& bytes : content) spans.emplace_back(bytes);
  ASSERT_TRUE(WriteSafetensors(path, SomeWeights(), spans, TorchMetadata()).ok());
  const auto header = ReadHeader(path);
  ASSERT_TRUE(header.ok()) << header.status();
  const std::string file = Slurp(path);
  ASSERT_EQ(header->tensors.size(), SomeWeights().size());
  for (const Placed& tensor : header->tensors) {
    EXPECT_EQ((header->data_start + tensor.begin) % base::SizeOf(tensor.spec.dtype), 0)
        << tensor.spec.name;
    const Bytes expected = BytesOf(tensor.spec);
    EXPECT_EQ(file.compare(static_cast<size_t>(header->data_start + tensor.begin), expected.size(),
                           reinterpret_cast<const char*>(expected.data()), expected.size()),
              0);
  }
  spans.pop_back();
  EXPECT_TRUE(
      absl::IsInvalidArgument(WriteSafetensors(path, SomeWeights(), spans, TorchMetadata())));
  EXPECT_EQ(Slurp(path), file);
}

TEST(SafetensorsTest, OtherFilesAreRejected) {
  const base::TempDir dir;
  EXPECT_TRUE(absl::IsNotFound(ReadHeader(dir.path() + "/absent").status()));
  EXPECT_FALSE(ReadHeader(dir.path()).ok());
  ASSERT_EQ(::mkfifo((dir.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(ReadHeader(dir.path() + "/pipe").status()));
  Spill(dir.path() + "/empty", "");
  EXPECT_TRUE(absl::IsDataLoss(ReadHeader(dir.path() + "/empty").status()));
  std::filesystem::create_symlink("empty", dir.path() + "/link");
  EXPECT_THAT(std::string(ReadHeader(dir.path() + "/link").status().message()),
              HasSubstr("symbolic link"));
}

}  // namespace
}  // namespace muster::checkpoint
