#include "jobs/results/results.h"

#include <string>

#include "base/testing.h"
#include "checkpoint/testing.h"
#include "gmock/gmock.h"

namespace muster::jobs {
namespace {

using testing::HasSubstr;

TEST(ResultsTest, ResumesOnlyFromACheckpointThatExists) {
  const base::TempDir temp;
  const std::string model_dir = temp.path() + "/model";
  const auto message = [&model_dir](int64_t step) {
    const absl::Status status = CheckCheckpoint(model_dir, step);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    return std::string(status.message());
  };
  EXPECT_EQ(message(7), model_dir + " has no checkpoint of step 7; available: none");
  ASSERT_TRUE(checkpoint::SaveStep(model_dir, 500).ok());
  EXPECT_EQ(message(7), model_dir + " has no checkpoint of step 7; available: 500");
  ASSERT_TRUE(checkpoint::SaveStep(model_dir, 1000).ok());
  ASSERT_TRUE(checkpoint::SaveStep(model_dir, 1500).ok());
  EXPECT_TRUE(CheckCheckpoint(model_dir, 1000).ok());
  checkpoint::Spill(checkpoint::CheckpointPath(model_dir, 1000) + "/manifest.json", "{");
  EXPECT_THAT(message(1000), HasSubstr("has no checkpoint of step 1000 that can be used ("));
  EXPECT_THAT(message(1000), HasSubstr("; available: 500, 1500"));
  EXPECT_THAT(std::string(CheckCheckpoint("memory://model", 7).message()),
              HasSubstr("memory://model has no checkpoint of step 7; available: none"));
}

}  // namespace
}  // namespace muster::jobs
