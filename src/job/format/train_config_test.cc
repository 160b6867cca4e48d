#include "job/format/train_config.h"

#include <filesystem>

#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kSection[] =
    R"({"model": "cnn", "steps": 10, "data": {"format": "mnist", "path": "d"}})";

std::string MistakesIn(const std::string& text_or_file) {
  return std::string(ReadTrainConfig(text_or_file).status().message());
}

TEST(TrainConfigTest, ATextOrAFileIsCompletedAsInAJob) {
  const base::TempDir dir;
  const std::string file = dir.path() + "/train.json";
  ASSERT_TRUE(base::ReplaceFile(file, kSection).ok());
  const auto from_text = ReadTrainConfig(kSection);
  const auto from_file = ReadTrainConfig(file);
  ASSERT_TRUE(from_text.ok()) << from_text.status();
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_EQ(*from_text, *from_file);
  EXPECT_EQ((*from_text)["batch_size"], 32);
  EXPECT_EQ((*from_text)["data"]["path"], (std::filesystem::current_path() / "d").string());
}

TEST(TrainConfigTest, ACompletedSectionIsUnchanged) {
  JobSpec job = MustParse(
      "name: a\ntrain: {model: cnn, steps: 10, data: {format: synthetic, shape: [1, 4, 4]}, "
      "optimizer: {type: rmsprop, decay: 0.9}, schedule: {type: cosine}, export: best, "
      "evaluate: {every_steps: 5}, early_stopping: {patience: 3}, metrics: [accuracy, auc]}\n");
  const auto read = ReadTrainConfig(job.train.dump());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, job.train);
}

TEST(TrainConfigTest, MistakesHavePositions) {
  EXPECT_THAT(MistakesIn(R"({"model": "cnn", "steps": 0, "data": {"format": "mnist", "path": "d"},
  "batchsize": 5})"),
              AllOf(HasSubstr("MUSTER_TRAIN_CONFIG:1:"), HasSubstr("'steps'"),
                    HasSubstr("MUSTER_TRAIN_CONFIG:2:"), HasSubstr("did you mean 'batch_size'?")));
  EXPECT_THAT(MistakesIn("/no/such/train.json"), HasSubstr("/no/such/train.json"));
  EXPECT_THAT(MistakesIn("{\"model\": "), HasSubstr("MUSTER_TRAIN_CONFIG:"));
  const base::TempDir dir;
  const std::string file = dir.path() + "/train.json";
  for (const char* text : {"", "[1, 2]", "7", "{}\n---\n{}\n"}) {
    ASSERT_TRUE(base::ReplaceFile(file, text).ok());
    EXPECT_THAT(MistakesIn(file), HasSubstr(file)) << text;
  }
}

}  // namespace
}  // namespace muster::job
