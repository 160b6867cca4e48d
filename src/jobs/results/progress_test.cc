#include "jobs/results/progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "jobs/json.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

using testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

Progress Step(int64_t step, int64_t steps = 1000) { return {.step = step, .steps = steps}; }

TEST(ProgressTest, ParsesAProgressFile) {
  const auto progress = ParseProgress(
      R"({"step": 120, "steps": 2000, "loss": 0.123, "examples_per_second": 5321.0, "mine": "x"})");
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->step, 120);
  EXPECT_EQ(progress->steps, 2000);
  EXPECT_EQ(progress->loss, 0.123);
  EXPECT_EQ(progress->examples_per_second, 5321);
  EXPECT_EQ(DescribeProgress(*progress), "step 120 of 2000, loss 0.1230, 5,321 examples/s");
  EXPECT_EQ(ProgressToJson(*progress).dump(),
            R"({"examples_per_second":5321.0,"loss":0.123,"step":120,"steps":2000})");
}

TEST(ProgressTest, AStepIsEnough) {
  const auto progress = ParseProgress(R"({"step": 7.0})");
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(DescribeProgress(*progress), "step 7");
  EXPECT_EQ(ProgressToJson(*progress).dump(),
            R"({"examples_per_second":null,"loss":null,"step":7,"steps":null})");
}

TEST(ProgressTest, IgnoresInvalidFiles) {
  for (const char* text :
       {"", "12", "{", R"({"step": 1)", "[1]", "null", "{}", R"({"step": "7"})", R"({"step": -1})",
        R"({"step": null})", R"({"step": 1e99})", R"({"step": 1e999})", "\xff\xfe",
        R"({"step": 18446744073709551616})", R"({"steps": 5})"}) {
    EXPECT_FALSE(ParseProgress(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseProgress(std::string(60'000, '[')).has_value());
}

TEST(ProgressTest, IgnoresInvalidValues) {
  const auto progress =
      ParseProgress(R"({"step": 9, "steps": 0, "loss": "\u001b[2J", "examples_per_second": -5})");
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(DescribeProgress(*progress), "step 9");
  EXPECT_EQ(DescribeProgress(*ParseProgress(R"({"step": 9, "steps": -3, "loss": 1e300})")),
            "step 9");
}

TEST(ProgressTest, KeepsANonFiniteLoss) {
  for (const char* loss : {"NaN", "Infinity", "-Infinity", "null"}) {
    const auto progress = ParseProgress(absl::StrCat(R"({"step": 9, "loss": )", loss, "}"));
    ASSERT_TRUE(progress.has_value()) << loss;
    EXPECT_EQ(DescribeProgress(*progress), "step 9, loss nan");
    EXPECT_THAT(ProgressToJson(*progress).dump(), HasSubstr(R"("loss":null)"));
  }
}

TEST(ProgressTest, FormatsNumbers) {
  const auto text = [](double loss, double rate) {
    return DescribeProgress({.step = 1, .loss = loss, .examples_per_second = rate});
  };
  EXPECT_EQ(text(12.3456789, 3.21), "step 1, loss 12.3457, 3.2 examples/s");
  EXPECT_EQ(text(0, 0), "step 1, loss 0.0000, 0.0 examples/s");
  EXPECT_EQ(text(0.00001234, 999.6), "step 1, loss 1.23e-05, 1,000 examples/s");
  EXPECT_EQ(text(-1e14, 1e15), "step 1, loss -1e+14, 1,000,000,000,000,000 examples/s");
}

class ProgressFileTest : public testing::Test {
 protected:
  ProgressFileTest() {
    job_.directory = temp_.path();
    for (const cluster::TaskId& id : {cluster::TaskId{"ps", 0}, cluster::TaskId{"worker", 0},
                                      cluster::TaskId{"worker", 1}, cluster::TaskId{"chief", 0}}) {
      tasks_.push_back({.id = id});
    }
  }
  std::string Path(const cluster::TaskId& task) const {
    const supervise::JobDir dir(temp_.path());
    EXPECT_TRUE(base::MakeDirectories(dir.run_dir(task)).ok());
    return dir.progress(task);
  }
  void Write(const cluster::TaskId& task, const std::string& text) const {
    EXPECT_TRUE(base::ReplaceFile(Path(task), text).ok());
  }
  int64_t StepOfJob() const {
    const auto progress = ReadJobProgress(job_, tasks_);
    return progress.has_value() ? progress->step : -1;
  }

  const base::TempDir temp_;
  job::JobRecord job_;
  std::vector<job::TaskRecord> tasks_;
};

TEST_F(ProgressFileTest, PrefersTheChief) {
  EXPECT_EQ(StepOfJob(), -1);
  Write({"worker", 1}, R"({"step": 2})");
  EXPECT_EQ(StepOfJob(), 2);
  Write({"worker", 0}, R"({"step": 1})");
  EXPECT_EQ(StepOfJob(), 1);
  Write({"chief", 0}, R"({"step": 3})");
  EXPECT_EQ(StepOfJob(), 3);
  Write({"chief", 0}, "");  // truncated, not yet rewritten
  EXPECT_EQ(StepOfJob(), 1);
}

TEST_F(ProgressFileTest, IgnoresSpecialAndHugeFiles) {
  const std::string path = Path({"chief", 0});
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(ReadProgressFile(path).has_value());
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(ReadProgressFile(path).has_value());
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/zero", path);
  EXPECT_FALSE(ReadProgressFile(path).has_value());
  std::filesystem::remove(path);
  Write({"chief", 0}, R"({"step": 3})");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 30), 0);
  EXPECT_FALSE(ReadProgressFile(path).has_value());
}

TEST(ProgressMeterTest, TimeLeftFollowsTheRate) {
  ProgressMeter meter;
  EXPECT_FALSE(meter.Left(kStart).has_value());
  for (int i = 0; i <= 100; ++i) meter.Update(Step(i), kStart + absl::Milliseconds(100) * i);
  const absl::Time now = kStart + absl::Seconds(10);
  EXPECT_NEAR(absl::ToDoubleSeconds(*meter.Left(now)), 90, 0.1);
  // The rate increases tenfold: after half a minute, the old rate has decayed.
  for (int i = 0; i < 60; ++i) meter.Update(Step(100 + 5 * i), now + absl::Milliseconds(50) * i);
  EXPECT_LT(*meter.Left(now + absl::Seconds(3)), absl::Seconds(40));
}

TEST(ProgressMeterTest, CountsDownBetweenStepsAndWaitsForALateStep) {
  ProgressMeter meter;
  for (int i = 0; i <= 5; ++i) meter.Update(Step(i, 10), kStart + absl::Seconds(4) * i);
  const absl::Time now = kStart + absl::Seconds(20);
  EXPECT_EQ(*meter.Left(now), absl::Seconds(20));
  EXPECT_EQ(*meter.Left(now + absl::Seconds(3)), absl::Seconds(17));
  EXPECT_EQ(*meter.Left(now + absl::Hours(3)), absl::Seconds(16));
  EXPECT_EQ(*meter.Left(now - absl::Hours(3)), absl::Seconds(20));  // the clock was set back
}

TEST(ProgressMeterTest, ReturnsNothingWithoutAnEstimate) {
  ProgressMeter meter;
  meter.Update(Step(500), kStart);
  EXPECT_FALSE(meter.Left(kStart).has_value());
  meter.Update(Step(501), kStart + absl::Milliseconds(300));
  EXPECT_FALSE(meter.Left(kStart + absl::Seconds(1)).has_value());  // too early
  meter.Update(Step(510), kStart + absl::Seconds(2));
  EXPECT_TRUE(meter.Left(kStart + absl::Seconds(2)).has_value());
  meter.Update(Step(400), kStart + absl::Seconds(3));  // resumed from a checkpoint
  EXPECT_FALSE(meter.Left(kStart + absl::Seconds(3)).has_value());
  meter.Update(Step(410), kStart + absl::Seconds(5));
  EXPECT_TRUE(meter.Left(kStart + absl::Seconds(5)).has_value());
  meter.Update(Step(1000), kStart + absl::Seconds(6));
  EXPECT_FALSE(meter.Left(kStart + absl::Seconds(6)).has_value());  // done
  meter.Update({.step = 1001}, kStart + absl::Seconds(7));
  EXPECT_FALSE(meter.Left(kStart + absl::Seconds(7)).has_value());  // unknown total
}

}  // namespace
}  // namespace muster::jobs
