#include "checkpoint/remote.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/testing.h"
#include "checkpoint/store.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using storage::Url;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RemoteTest : public testing::Test {
 protected:
  RemoteTest()
      : remote_(*storage::ParseUrl("memory://runs/a")),
        files_(**storage_.For(remote_)),
        store_(storage_, remote_) {}

  std::string Make(int64_t step) {
    EXPECT_TRUE(SaveStep(here_.path(), step).ok());
    return CheckpointPath(here_.path(), step);
  }
  void SendSteps(const std::vector<int64_t>& steps) {
    for (const int64_t step : steps) ASSERT_TRUE(store_.Send(Make(step)).ok());
  }
  std::vector<int64_t> Steps() { return store_.Steps().value_or(std::vector<int64_t>{-1}); }
  void WriteBestStep(int64_t step) {
    ASSERT_TRUE(WriteBest(here_.path(), {.step = step, .metric = "accuracy", .value = 0.5}).ok());
    const std::string text = Slurp(here_.path() + "/checkpoints/best.json");
    ASSERT_TRUE(WriteWhole(files_, remote_.Child("checkpoints/best.json"), text).ok());
  }
  Url FileOf(int64_t step, const std::string& name) const {
    return remote_.Child(absl::StrCat("checkpoints/", StepFolder(step), "/", name));
  }

  base::TempDir here_, there_;
  storage::Storage storage_;
  const Url remote_;
  storage::FileSystem& files_;
  RemoteStore store_;
};

TEST_F(RemoteTest, UploadsAndDownloads) {
  EXPECT_THAT(Steps(), IsEmpty());
  SendSteps({3, 20});
  EXPECT_THAT(Steps(), ElementsAre(3, 20));
  EXPECT_EQ(store_.ReadManifest(20)->model_name, "cnn");
  EXPECT_EQ((*store_.ReadState(20))["rng"], "123");
  ASSERT_TRUE(store_.Fetch(20, there_.path()).ok());
  const auto opened = Checkpoint::Open(CheckpointPath(there_.path(), 20));
  ASSERT_TRUE(opened.ok()) << opened.status();
  for (const base::TensorSpec& spec : SomeWeights()) {
    const auto bytes = *opened->Weight(spec.name);
    EXPECT_EQ(Bytes(bytes.begin(), bytes.end()), BytesOf(spec, 20)) << spec.name;
  }
  EXPECT_TRUE(store_.Fetch(20, there_.path()).ok()) << "already fetched";
  EXPECT_TRUE(absl::IsNotFound(store_.Fetch(4, there_.path())));
}

TEST_F(RemoteTest, ACheckpointWithoutAManifestIsNotFound) {
  SendSteps({3, 20});
  ASSERT_TRUE(files_.Delete(FileOf(20, kManifestFile)).ok());
  EXPECT_THAT(Steps(), ElementsAre(3));
}

TEST_F(RemoteTest, DamageIsDetectedBeforeTheCheckpointIsVisible) {
  SendSteps({3});
  const auto info = files_.List(remote_, storage::Depth::kAll);
  std::string damaged;
  for (const auto& entry : *info) {
    if (entry.url.Basename().find("model-0") == 0) damaged = entry.url.name;
  }
  const Url url = remote_.WithName(damaged);
  std::string content = *ReadWhole(files_, url);
  content[content.size() / 2] ^= 1;
  ASSERT_TRUE(WriteWhole(files_, url, content).ok());
  const absl::Status status = store_.Fetch(3, there_.path());
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory://runs/a/checkpoints/step-"));
  EXPECT_THAT(Restore(there_.path(), std::nullopt, nullptr).status().code(),
              absl::StatusCode::kNotFound);
}

TEST_F(RemoteTest, AManifestThatPointsOutsideIsRejected) {
  SendSteps({3});
  Manifest manifest = *store_.ReadManifest(3);
  manifest.files[0].name = "../../../outside";
  ASSERT_TRUE(WriteWhole(files_, FileOf(3, kManifestFile), ToJson(manifest)).ok());
  EXPECT_TRUE(absl::IsDataLoss(store_.Fetch(3, there_.path())));
}

TEST_F(RemoteTest, UploadingAStepAgainReplacesIt) {
  SendSteps({3});
  std::filesystem::remove_all(CheckpointPath(here_.path(), 3));
  ASSERT_TRUE(Save(here_.path(), {.step = 3, .model_name = "other", .final = true}).ok());
  ASSERT_TRUE(store_.Send(CheckpointPath(here_.path(), 3)).ok());
  EXPECT_EQ(store_.ReadManifest(3)->model_name, "other");
  EXPECT_TRUE(store_.Fetch(3, there_.path()).ok());
}

TEST_F(RemoteTest, TheNewestAndTheBestAreKept) {
  SendSteps({1, 2, 3, 4, 5});
  WriteBestStep(2);
  ASSERT_TRUE(store_.Retain(2).ok());
  EXPECT_THAT(Steps(), ElementsAre(2, 4, 5));
  const auto left = files_.List(remote_, storage::Depth::kAll);
  for (const auto& info : *left) {
    EXPECT_EQ(info.url.name.find(StepFolder(1)), std::string::npos) << info.url.name;
  }
}

TEST_F(RemoteTest, AMissingFileIsDamage) {
  SendSteps({3});
  ASSERT_TRUE(files_.Delete(FileOf(3, kStateFile)).ok());
  EXPECT_TRUE(absl::IsDataLoss(store_.Fetch(3, there_.path())));
}

TEST_F(RemoteTest, LeftoversOfDeadWritersAreRemoved) {
  SendSteps({3, 9});
  ASSERT_TRUE(WriteWhole(files_, FileOf(5, "model-00001-of-00001.safetensors"), "half").ok());
  ASSERT_TRUE(WriteWhole(files_, FileOf(12, "model-00001-of-00001.safetensors"), "new").ok());
  ASSERT_TRUE(store_.Retain(5).ok());
  EXPECT_THAT(Steps(), ElementsAre(3, 9));
  EXPECT_TRUE(files_.Stat(FileOf(12, "model-00001-of-00001.safetensors")).ok());
  EXPECT_FALSE(files_.Stat(FileOf(5, "model-00001-of-00001.safetensors")).ok());
}

TEST_F(RemoteTest, LaterCheckpointsAreSetAside) {
  SendSteps({1, 2, 3});
  WriteBestStep(3);
  ASSERT_TRUE(store_.SetAside(1).ok());
  EXPECT_THAT(Steps(), ElementsAre(1));
  EXPECT_TRUE(absl::IsNotFound(store_.ReadBest().status()));
  EXPECT_TRUE(files_.Stat(remote_.Child("superseded-1/best.json")).ok());
  EXPECT_TRUE(files_.Stat(remote_.Child("superseded-1/step-000000003/manifest.json")).ok());
  SendSteps({2});
  ASSERT_TRUE(store_.SetAside(1).ok());
  EXPECT_TRUE(files_.Stat(remote_.Child("superseded-2/step-000000002/manifest.json")).ok());
  EXPECT_THAT(Steps(), ElementsAre(1));
}

TEST_F(RemoteTest, AWholeRunIsSetAside) {
  EXPECT_EQ(*store_.SetRunAside(), "");
  SendSteps({1, 2});
  WriteBestStep(2);
  for (const char* name : {"eval/latest.json", "events.out.tfevents.1.train", "notes.txt"}) {
    ASSERT_TRUE(WriteWhole(files_, remote_.Child(name), name).ok());
  }
  EXPECT_EQ(*store_.SetRunAside(), remote_.Child("superseded-1").ToString());
  EXPECT_THAT(Steps(), testing::IsEmpty());
  for (const char* name : {"best.json", "step-000000002/manifest.json", "eval/latest.json",
                           "events.out.tfevents.1.train"}) {
    EXPECT_TRUE(files_.Stat(remote_.Child("superseded-1").Child(name)).ok()) << name;
  }
  EXPECT_FALSE(files_.Stat(remote_.Child("eval/latest.json")).ok());
  EXPECT_TRUE(files_.Stat(remote_.Child("notes.txt")).ok());
  EXPECT_EQ(*store_.SetRunAside(), "");
}

}  // namespace
}  // namespace muster::checkpoint
