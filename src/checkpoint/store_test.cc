#include "checkpoint/store.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "absl/time/clock.h"
#include "base/testing.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  void SaveSteps(const std::vector<int64_t>& steps) {
    for (const int64_t step : steps) ASSERT_TRUE(SaveStep(model_dir(), step).ok());
  }
  const std::string& model_dir() const { return dir_.path(); }
  std::string Folder(int64_t step) const { return CheckpointPath(model_dir(), step); }
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    for (const Entry& entry : List(model_dir())) steps.push_back(entry.step);
    return steps;
  }

  base::TempDir dir_;
};

TEST_F(StoreTest, AMissingStoreIsNoError) {
  EXPECT_THAT(List(model_dir() + "/absent"), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(Restore(model_dir(), std::nullopt, nullptr).status()));
  EXPECT_TRUE(absl::IsNotFound(Restore(model_dir(), 3, nullptr).status()));
  EXPECT_TRUE(Retain(model_dir() + "/absent", 1, {}).ok());
  EXPECT_TRUE(SetAside(model_dir() + "/absent", 1).ok());
}

TEST_F(StoreTest, ListsOldestFirstWithStatuses) {
  SaveSteps({20, 3});
  ASSERT_TRUE(Save(model_dir(), {.step = 100, .final = true}).ok());
  std::filesystem::create_directory(Folder(50));
  Spill(base::JoinPath(Folder(3), kStateFile), "{}");
  Spill(base::JoinPath(model_dir(), "checkpoints/notes.txt"), "mine");
  const auto entries = List(model_dir());
  ASSERT_THAT(Steps(), ElementsAre(3, 20, 50, 100));
  EXPECT_TRUE(absl::IsDataLoss(entries[0].status));
  EXPECT_THAT(std::string(entries[0].status.message()), HasSubstr(kStateFile));
  EXPECT_TRUE(entries[1].status.ok()) << entries[1].status;
  EXPECT_GT(entries[1].bytes, 500);
  EXPECT_LT(absl::Now() - entries[1].written, absl::Minutes(5));
  EXPECT_TRUE(absl::IsUnavailable(entries[2].status));
  EXPECT_TRUE(entries[3].final);
  EXPECT_FALSE(entries[1].final);
}

TEST_F(StoreTest, RestoresTheNewestValidCheckpoint) {
  SaveSteps({1, 2, 3, 4});
  FlipByte(base::JoinPath(Folder(4), "model-00001-of-00004.safetensors"));
  std::filesystem::remove(base::JoinPath(Folder(3), kManifestFile));
  std::vector<std::string> skipped;
  const auto restored = Restore(model_dir(), std::nullopt, &skipped);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->step(), 2);
  EXPECT_EQ(restored->state()["step"], 2);
  EXPECT_THAT(skipped, ElementsAre(AllOf(HasSubstr("step 4: "), HasSubstr("model-00001"),
                                         HasSubstr("SHA-256")),
                                   AllOf(HasSubstr("step 3: "), HasSubstr("manifest.json"))));
}

TEST_F(StoreTest, RestoresExactlyTheRequestedStep) {
  SaveSteps({1, 2, 3});
  EXPECT_EQ(Restore(model_dir(), 2, nullptr)->step(), 2);
  EXPECT_TRUE(absl::IsNotFound(Restore(model_dir(), 4, nullptr).status()));
  FlipByte(base::JoinPath(Folder(2), kStateFile));
  EXPECT_TRUE(absl::IsDataLoss(Restore(model_dir(), 2, nullptr).status()));
}

TEST_F(StoreTest, AllDamagedIsNotFoundWithReasons) {
  SaveSteps({1, 2});
  for (const int64_t step : {1, 2}) FlipByte(base::JoinPath(Folder(step), kStateFile));
  std::vector<std::string> skipped;
  EXPECT_TRUE(absl::IsNotFound(Restore(model_dir(), std::nullopt, &skipped).status()));
  EXPECT_EQ(skipped.size(), 2u);
}

TEST_F(StoreTest, AFolderThatIsALinkIsNotRestored) {
  SaveSteps({1, 2});
  std::filesystem::rename(Folder(2), model_dir() + "/elsewhere");
  std::filesystem::create_directory_symlink(model_dir() + "/elsewhere", Folder(2));
  EXPECT_EQ(Restore(model_dir(), std::nullopt, nullptr)->step(), 1);
  EXPECT_TRUE(absl::IsDataLoss(Restore(model_dir(), 2, nullptr).status()));
}

TEST_F(StoreTest, RetainKeepsTheNewestAndPinnedSteps) {
  SaveSteps({1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(Retain(model_dir(), 2, {2, 77}).ok());
  EXPECT_THAT(Steps(), ElementsAre(2, 5, 6));
  ASSERT_TRUE(Retain(model_dir(), 5, {}).ok());
  EXPECT_THAT(Steps(), ElementsAre(2, 5, 6));
  EXPECT_TRUE(absl::IsInvalidArgument(Retain(model_dir(), 0, {})));
  EXPECT_THAT(Steps(), ElementsAre(2, 5, 6));
}

TEST_F(StoreTest, ADamagedCheckpointDoesNotCountAndExpires) {
  SaveSteps({1, 2, 3, 4});
  std::filesystem::remove(base::JoinPath(Folder(4), kStateFile));
  std::filesystem::remove(base::JoinPath(Folder(1), kManifestFile));
  ASSERT_TRUE(Retain(model_dir(), 2, {}).ok());
  EXPECT_THAT(Steps(), ElementsAre(2, 3, 4));
}

TEST_F(StoreTest, RetainRestoresAnInterruptedReplacement) {
  SaveSteps({1, 2});
  std::filesystem::rename(Folder(2), Folder(2) + kReplacedSuffix);
  EXPECT_EQ(Restore(model_dir(), std::nullopt, nullptr)->step(), 1);
  ASSERT_TRUE(Retain(model_dir(), 5, {}).ok());
  EXPECT_EQ(Restore(model_dir(), std::nullopt, nullptr)->step(), 2);
}

TEST_F(StoreTest, RetainDoesNotFollowLinks) {
  SaveSteps({1, 2});
  std::filesystem::rename(Folder(1), model_dir() + "/elsewhere");
  std::filesystem::create_directory_symlink(model_dir() + "/elsewhere", Folder(1));
  ASSERT_TRUE(Retain(model_dir(), 1, {}).ok());
  EXPECT_THAT(Steps(), ElementsAre(2));
  EXPECT_TRUE(std::filesystem::exists(model_dir() + "/elsewhere/manifest.json"));
}

TEST_F(StoreTest, SetAsideHidesNewerCheckpoints) {
  SaveSteps({1, 2, 3, 4});
  ASSERT_TRUE(WriteBest(model_dir(), {.step = 3, .metric = "accuracy", .value = 0.9}).ok());
  ASSERT_TRUE(SetAside(model_dir(), 2).ok());
  EXPECT_THAT(Steps(), ElementsAre(1, 2));
  EXPECT_TRUE(absl::IsNotFound(ReadBest(model_dir()).status()));
  EXPECT_TRUE(std::filesystem::exists(model_dir() + "/superseded-1/step-000000004/manifest.json"));
  EXPECT_TRUE(std::filesystem::exists(model_dir() + "/superseded-1/best.json"));
  ASSERT_TRUE(SetAside(model_dir(), 2).ok());
  EXPECT_FALSE(std::filesystem::exists(model_dir() + "/superseded-2"));
  ASSERT_TRUE(SetAside(model_dir(), 0).ok());
  EXPECT_TRUE(std::filesystem::exists(model_dir() + "/superseded-2/step-000000001"));
  EXPECT_THAT(Steps(), IsEmpty());
}

TEST_F(StoreTest, AWholeRunIsSetAside) {
  EXPECT_THAT(*SetRunAside(model_dir()), IsEmpty());
  SaveSteps({1, 2});
  ASSERT_TRUE(WriteBest(model_dir(), {.step = 2, .metric = "accuracy", .value = 0.9}).ok());
  std::filesystem::create_directories(model_dir() + "/eval");
  Spill(model_dir() + "/eval/latest.json", "{}");
  Spill(model_dir() + "/events.out.tfevents.1.train", "events");
  Spill(model_dir() + "/notes.txt", "mine");
  EXPECT_EQ(*SetRunAside(model_dir()), model_dir() + "/superseded-1");
  EXPECT_THAT(Steps(), IsEmpty());
  for (const char* moved : {"best.json", "step-000000001/manifest.json", "step-000000002",
                            "eval/latest.json", "events.out.tfevents.1.train"}) {
    EXPECT_TRUE(std::filesystem::exists(base::JoinPath(model_dir() + "/superseded-1", moved)))
        << moved;
  }
  EXPECT_FALSE(std::filesystem::exists(model_dir() + "/eval"));
  EXPECT_TRUE(std::filesystem::exists(model_dir() + "/notes.txt"));
  EXPECT_THAT(*SetRunAside(model_dir()), IsEmpty());
}

TEST_F(StoreTest, TheBestIsRecorded) {
  EXPECT_TRUE(absl::IsNotFound(ReadBest(model_dir()).status()));
  ASSERT_TRUE(WriteBest(model_dir(), {.step = 500, .metric = "accuracy", .value = 0.99}).ok());
  const auto best = ReadBest(model_dir());
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->step, 500);
  EXPECT_EQ(best->metric, "accuracy");
  EXPECT_EQ(best->value, 0.99);
  EXPECT_TRUE(absl::IsInvalidArgument(
      WriteBest(model_dir(), {.step = 1, .metric = "loss", .value = std::nan("")})));
  Spill(base::JoinPath(model_dir(), "checkpoints/best.json"), "{\"step\": \"x\"}");
  EXPECT_TRUE(absl::IsDataLoss(ReadBest(model_dir()).status()));
}

TEST_F(StoreTest, OneJobAtATimeTrainsInAModelDir) {
  const std::string fresh = model_dir() + "/a/b";
  {
    const auto first = ClaimForTraining(fresh, "job one, process 1 on here");
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = ClaimForTraining(fresh, "job two");
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr("job one, process 1 on here trains in this model dir; stop it first"));
  }
  const auto third = ClaimForTraining(fresh, "3");
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_THAT(std::string(ClaimForTraining(fresh, "").status().message()), HasSubstr(": 3 trains"));
}

}  // namespace
}  // namespace muster::checkpoint
