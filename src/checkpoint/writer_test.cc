#include "checkpoint/writer.h"

#include <filesystem>

#include "base/bytes/digest.h"
#include "base/testing.h"
#include "checkpoint/disk.h"
#include "checkpoint/reader.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

void ExpectHolds(const std::string& folder, int64_t step) {
  const auto checkpoint = Checkpoint::Open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->weights().size(), SomeWeights().size());
  for (const base::TensorSpec& spec : SomeWeights()) {
    EXPECT_THAT(checkpoint->weights(), ::testing::Contains(spec));
    EXPECT_EQ(*checkpoint->Weight(spec.name), absl::MakeConstSpan(BytesOf(spec, step)));
  }
  EXPECT_EQ(checkpoint->slots(), SomeSlots());
  for (const base::TensorSpec& spec : SomeSlots()) {
    EXPECT_EQ(*checkpoint->Slot(spec.name), absl::MakeConstSpan(BytesOf(spec, step)));
  }
}

TEST(Sha256Test, IsTheStandardOne) {
  base::Sha256 hash;
  hash.Update(AsBytes("a"));
  hash.Update(AsBytes("bc"));
  const std::string known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(hash.Finish(), known);
  EXPECT_EQ(base::Sha256Hex("abc"), known);
}

TEST(WriterTest, WritesTheFilesOfTheFormat) {
  const base::TempDir dir;
  ASSERT_TRUE(Save(dir.path(), {.step = 500, .model_name = "cnn", .final = true}).ok());
  const std::string folder = CheckpointPath(dir.path(), 500);
  // Elements of 4, 8, 1 and 2 bytes, in one file each.
  EXPECT_THAT(
      NamesIn(folder),
      UnorderedElementsAre("model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                           "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors",
                           "model.safetensors.index.json", "optimizer-00001-of-00001.safetensors",
                           "state.json", "manifest.json"));
  const auto checkpoint = Checkpoint::Open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->step(), 500);
  EXPECT_TRUE(checkpoint->final());
  EXPECT_EQ(checkpoint->model_name(), "cnn");
  EXPECT_EQ(checkpoint->state()["rng"], "123");
  ExpectHolds(folder, 500);
  const auto index = nlohmann::json::parse(Slurp(base::JoinPath(folder, kIndexFile)));
  EXPECT_EQ(index["metadata"]["total_size"], 4 * (36 + 3 + 35) + 8 + 3 + 6);
  EXPECT_EQ(index["weight_map"]["norm.count"], "model-00002-of-00004.safetensors");
  EXPECT_EQ(index["weight_map"].size(), SomeWeights().size());
}

TEST(WriterTest, BytesMayArriveInPiecesOfAnySize) {
  const base::TempDir dir;
  Bytes all;
  for (const auto& specs : {SomeWeights(), SomeSlots()}) {
    for (const base::TensorSpec& spec : specs) {
      const Bytes bytes = BytesOf(spec, 7);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  }
  for (const size_t piece : {size_t{1}, size_t{5}, all.size()}) {
    auto writer = Writer::Begin(dir.path(), {.step = 7}, SomeWeights(), SomeSlots());
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (size_t i = 0; i < all.size(); i += piece) {
      ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(all).subspan(i, piece)).ok());
    }
    ASSERT_TRUE((*writer)->Commit(nlohmann::json::object()).ok());
    ExpectHolds((*writer)->folder(), 7);
  }
}

TEST(WriterTest, LargeTensorsInLargeAndSmallPieces) {
  const base::TempDir dir;
  const std::vector<base::TensorSpec> specs = {{"a", base::DType::kFloat32, {700'001}},
                                               {"b", base::DType::kFloat32, {3}},
                                               {"c", base::DType::kFloat32, {1'000'000}}};
  auto writer = Writer::Begin(dir.path(), {.step = 1}, specs, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(AppendAll(**writer, specs, 1).ok());
  ASSERT_TRUE((*writer)->Commit(nlohmann::json::object()).ok());
  const auto checkpoint = Checkpoint::Open((*writer)->folder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const base::TensorSpec& spec : specs) {
    EXPECT_EQ(*checkpoint->Weight(spec.name), absl::MakeConstSpan(BytesOf(spec, 1)));
  }
}

TEST(WriterTest, SplitsBySizeAndKeepsTensorsWhole) {
  const base::TempDir dir;
  std::vector<base::TensorSpec> specs;
  for (int i = 0; i < 10; ++i) specs.push_back({absl::StrCat("t", i), base::DType::kFloat32, {25}});
  specs.push_back({"large", base::DType::kFloat32, {1000}});
  auto writer = Writer::Begin(dir.path(), {.step = 1, .max_file_bytes = 300}, specs, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(AppendAll(**writer, specs, 1).ok());
  ASSERT_TRUE((*writer)->Commit(nlohmann::json::object()).ok());
  const auto checkpoint = Checkpoint::Open((*writer)->folder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->weights(), specs);
  EXPECT_EQ(checkpoint->WeightFile("t2"), "model-00001-of-00005.safetensors");
  EXPECT_EQ(checkpoint->WeightFile("t3"), "model-00002-of-00005.safetensors");
  EXPECT_EQ(checkpoint->WeightFile("large"), "model-00005-of-00005.safetensors");
}

TEST(WriterTest, EveryTensorIsAlignedToItsElements) {
  const base::TempDir dir;
  ASSERT_TRUE(SaveStep(dir.path(), 1).ok());
  for (int number = 1; number <= 4; ++number) {
    const auto header =
        ReadHeader(base::JoinPath(CheckpointPath(dir.path(), 1), ShardFile(kModelKind, number, 4)));
    ASSERT_TRUE(header.ok()) << header.status();
    for (const Placed& tensor : header->tensors) {
      EXPECT_EQ((header->data_start + tensor.begin) % base::SizeOf(tensor.spec.dtype), 0);
    }
  }
}

TEST(WriterTest, AModelWithoutSlotsAndAModelWithoutAnything) {
  const base::TempDir dir;
  auto writer = Writer::Begin(dir.path(), {.step = 0}, {}, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Commit(nlohmann::json::object()).ok());
  const auto checkpoint = Checkpoint::Open((*writer)->folder());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_TRUE(checkpoint->weights().empty());
  EXPECT_TRUE(absl::IsNotFound(checkpoint->Weight("w").status()));
}

TEST(WriterTest, NothingIsVisibleBeforeCommitAndNothingRemainsWithout) {
  const base::TempDir dir;
  {
    auto writer = Writer::Begin(dir.path(), {.step = 5}, SomeWeights(), SomeSlots());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(AppendAll(**writer, SomeWeights(), 5).ok());
    EXPECT_FALSE(std::filesystem::exists(CheckpointPath(dir.path(), 5)));
    EXPECT_TRUE(absl::IsNotFound(Restore(dir.path(), std::nullopt, nullptr).status()));
    ASSERT_EQ(List(dir.path()).size(), 1u);
    EXPECT_TRUE(absl::IsUnavailable(List(dir.path())[0].status));
  }
  EXPECT_TRUE(List(dir.path()).empty());
}

TEST(WriterTest, MissingAndSurplusBytesAreErrors) {
  const base::TempDir dir;
  auto writer = Writer::Begin(dir.path(), {.step = 5}, SomeWeights(), SomeSlots());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(AppendAll(**writer, SomeWeights(), 5).ok());
  const absl::Status missing = (*writer)->Commit(nlohmann::json::object());
  EXPECT_TRUE(absl::IsFailedPrecondition(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("7 of 9 tensors"));
  EXPECT_EQ((*writer)->Append({}), missing);
  EXPECT_TRUE(List(dir.path()).empty());

  writer = Writer::Begin(dir.path(), {.step = 5}, {{"w", base::DType::kUint8, {2}}}, {});
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Append(Bytes(3))));
  EXPECT_TRUE(List(dir.path()).empty());
}

TEST(WriterTest, RejectsSpecsAndStatesThatCannotBeStored) {
  const base::TempDir dir;
  const base::TensorSpec w{"w", base::DType::kFloat32, {1}};
  for (const auto& specs : std::vector<std::vector<base::TensorSpec>>{
           {w, w}, {{"\xff", base::DType::kFloat32, {1}}}, {{"w", base::DType::kFloat32, {-1}}}}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(Writer::Begin(dir.path(), {.step = 1}, specs, {}).status()));
    EXPECT_TRUE(
        absl::IsInvalidArgument(Writer::Begin(dir.path(), {.step = 1}, {}, specs).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Writer::Begin(dir.path(), {.step = -1}, {}, {}).status()));
  for (const nlohmann::json& state :
       {nlohmann::json(1), nlohmann::json{{"text", "\xff"}}, nlohmann::json()}) {
    auto writer = Writer::Begin(dir.path(), {.step = 1}, {}, {});
    ASSERT_TRUE(writer.ok());
    EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Commit(state)));
  }
  EXPECT_TRUE(List(dir.path()).empty());
}

TEST(WriterTest, ASecondWriterOfTheSameStepIsRejected) {
  const base::TempDir dir;
  auto first = Writer::Begin(dir.path(), {.step = 5}, SomeWeights(), {});
  ASSERT_TRUE(first.ok());
  const auto second = Writer::Begin(dir.path(), {.step = 5}, SomeWeights(), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process is writing"));
  EXPECT_TRUE(Writer::Begin(dir.path(), {.step = 6}, SomeWeights(), {}).ok());
  ASSERT_TRUE(AppendAll(**first, SomeWeights(), 5).ok());
  EXPECT_TRUE((*first)->Commit(nlohmann::json::object()).ok());
}

TEST(WriterTest, AnExistingCheckpointIsReplacedOnlyByACompleteOne) {
  const base::TempDir dir;
  ASSERT_TRUE(SaveStep(dir.path(), 5).ok());
  {
    auto writer = Writer::Begin(dir.path(), {.step = 5}, {{"w", base::DType::kUint8, {2}}}, {});
    ASSERT_TRUE(writer.ok());
  }
  ExpectHolds(CheckpointPath(dir.path(), 5), 5);
  const auto before = Checkpoint::Open(CheckpointPath(dir.path(), 5));
  auto writer = Writer::Begin(dir.path(), {.step = 5}, {{"w", base::DType::kUint8, {2}}}, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(Bytes(2)).ok());
  ASSERT_TRUE((*writer)->Commit(nlohmann::json::object()).ok());
  const auto after = Checkpoint::Open(CheckpointPath(dir.path(), 5));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->weights().size(), 1u);
  EXPECT_EQ(List(dir.path()).size(), 1u);
  // Readers of the old checkpoint are not disturbed.
  EXPECT_EQ(*before->Weight("fc.weight"), absl::MakeConstSpan(BytesOf(SomeWeights()[3], 5)));
}

}  // namespace
}  // namespace muster::checkpoint
