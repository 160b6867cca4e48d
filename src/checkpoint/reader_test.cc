#include "checkpoint/reader.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "base/bytes/digest.h"
#include "base/testing.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

class ReaderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(SaveStep(dir_.path(), 5).ok()); }

  std::string Path(const std::string& name) const { return base::JoinPath(folder_, name); }

  // Replaces a file and updates its hash in the manifest.
  void Forge(const std::string& name, const std::string& content) {
    Spill(Path(name), content);
    auto manifest = ReadManifest(folder_);
    ASSERT_TRUE(manifest.ok());
    for (ManifestFile& file : manifest->files) {
      if (file.name != name) continue;
      file.bytes = static_cast<int64_t>(content.size());
      file.sha256 = base::Sha256Hex(content);
    }
    Spill(Path(kManifestFile), ToJson(*manifest));
  }

  void ExpectDamaged(const std::string& words) {
    const auto opened = Checkpoint::Open(folder_);
    EXPECT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(words));
  }

  base::TempDir dir_;
  const std::string folder_ = CheckpointPath(dir_.path(), 5);
  const std::string shard_ = "model-00001-of-00004.safetensors";
};

TEST_F(ReaderTest, DetectsAFlippedByteInAnyFile) {
  const auto manifest = ReadManifest(folder_);
  ASSERT_TRUE(manifest.ok());
  for (const ManifestFile& file : manifest->files) {
    FlipByte(Path(file.name));
    ExpectDamaged(file.name);
    FlipByte(Path(file.name));
  }
  EXPECT_TRUE(Checkpoint::Open(folder_).ok());
}

TEST_F(ReaderTest, DetectsAMissingOrShortFileWithoutHashing) {
  const std::string content = Slurp(Path(shard_));
  Spill(Path(shard_), content.substr(0, content.size() - 1));
  EXPECT_THAT(std::string(Checkpoint::Open(folder_, /*verify=*/false).status().message()),
              HasSubstr("bytes instead of"));
  std::filesystem::remove(Path(shard_));
  EXPECT_TRUE(absl::IsDataLoss(Checkpoint::Open(folder_, /*verify=*/false).status()));
}

TEST_F(ReaderTest, WithoutAManifestItIsPartial) {
  std::filesystem::remove(Path(kManifestFile));
  EXPECT_TRUE(absl::IsUnavailable(Checkpoint::Open(folder_).status()));
}

TEST_F(ReaderTest, LinksAndPipesAreNotFollowed) {
  const std::string elsewhere = dir_.path() + "/elsewhere";
  std::filesystem::rename(Path(shard_), elsewhere);
  std::filesystem::create_symlink(elsewhere, Path(shard_));
  ExpectDamaged("symbolic link");
  std::filesystem::remove(Path(shard_));
  ASSERT_EQ(::mkfifo(Path(shard_).c_str(), 0600), 0);
  ExpectDamaged("is not a file");
  std::filesystem::rename(Path(kManifestFile), elsewhere);
  std::filesystem::create_symlink(elsewhere, Path(kManifestFile));
  ExpectDamaged("symbolic link");
}

TEST_F(ReaderTest, AManifestOfAnotherStepIsRejected) {
  std::filesystem::rename(folder_, CheckpointPath(dir_.path(), 6));
  EXPECT_TRUE(absl::IsDataLoss(Checkpoint::Open(CheckpointPath(dir_.path(), 6)).status()));
  // A folder whose name is not that of a step is accepted.
  std::filesystem::rename(CheckpointPath(dir_.path(), 6), dir_.path() + "/mine");
  EXPECT_TRUE(Checkpoint::Open(dir_.path() + "/mine").ok());
}

TEST_F(ReaderTest, ForgedContentIsRejected) {
  const std::string index = Slurp(Path(kIndexFile));
  Forge(kIndexFile, absl::StrReplaceAll(index, {{shard_, "../../secret.safetensors"}}));
  ExpectDamaged("weight_map has a wrong entry");
  Forge(kIndexFile, absl::StrReplaceAll(index, {{"fc.weight", "fc.other"}}));
  ExpectDamaged("weight_map has a wrong entry");
  Forge(kIndexFile, "{}");
  ExpectDamaged("weight_map");
  Forge(kIndexFile, index);

  Forge(kStateFile, "[]");
  ExpectDamaged("not a JSON object");
  Forge(kStateFile, "{\"a\":" + std::string(1'000'000, '['));
  ExpectDamaged("nests deeper");
  Forge(kStateFile, "{}");
  EXPECT_TRUE(Checkpoint::Open(folder_).ok());

  Forge("model-00002-of-00004.safetensors", *WriteHeader({}, {}));
  ExpectDamaged("weight_map");
  Forge("model-00002-of-00004.safetensors", Slurp(Path(shard_)));
  ExpectDamaged("in another file");
  Forge("model-00002-of-00004.safetensors", "short");
  ExpectDamaged("shorter than");
}

TEST_F(ReaderTest, AllFilesOfAKindMustBeListed) {
  auto manifest = ReadManifest(folder_);
  ASSERT_TRUE(manifest.ok());
  manifest->files.erase(manifest->files.begin() + 1);
  Spill(Path(kManifestFile), ToJson(*manifest));
  ExpectDamaged("3 of 4 model files");
}

TEST_F(ReaderTest, MovingKeepsTheBytesInPlace) {
  auto opened = Checkpoint::Open(folder_);
  ASSERT_TRUE(opened.ok());
  const auto before = *opened->Weight("fc.weight");
  const Checkpoint moved = *std::move(opened);
  EXPECT_EQ(moved.Weight("fc.weight")->data(), before.data());
  EXPECT_TRUE(absl::IsNotFound(moved.Slot("fc.weight").status()));
}

}  // namespace
}  // namespace muster::checkpoint
