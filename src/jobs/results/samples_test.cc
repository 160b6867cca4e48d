#include "jobs/results/samples.h"

#include <chrono>
#include <filesystem>

#include "base/files/files.h"
#include "gtest/gtest.h"
#include "jobs/json.h"
#include "jobs/testing.h"
#include "supervise/usage/sample_file.h"

namespace muster::jobs {
namespace {

Sample At(absl::Time time, double cores, int attempt = 0) {
  Sample sample{.time = time, .interval = absl::Seconds(5), .attempt = attempt};
  sample.cpu = Load{.mean = cores, .peak = cores};
  sample.memory = Load{.mean = 1024, .peak = 2048};
  return sample;
}

// A job with two workers in the history, without processes.
class SamplesTest : public testing::Test {
 protected:
  SamplesTest() : dir_(service_->home() + "/jobs/run-1") {
    EXPECT_TRUE(base::MakeDirectories(dir_.path() + "/samples").ok());
    job_ = {.id = "run-1", .name = "run", .platform = "local", .directory = dir_.path()};
    job_.created = now_ - absl::Minutes(1);
    job::StateChange change{.job = job_};
    for (int i : {0, 1}) change.tasks.push_back({.id = {"worker", i}});
    EXPECT_TRUE((*service_->history())->Apply(change).ok());
  }

  void Write(int worker, const Sample& sample) {
    EXPECT_TRUE(supervise::SampleFile(dir_.samples({"worker", worker})).Append(sample).ok());
  }
  std::vector<TaskSamples> Read() {
    auto samples = ReadSamples(*service_, job_);
    EXPECT_TRUE(samples.ok()) << samples.status();
    return *std::move(samples);
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  const job::TaskRecord running_{.id = {"worker", 0}, .state = job::TaskState::kRunning};
  TestService service_;
  supervise::JobDir dir_;
  job::JobRecord job_;
};

TEST_F(SamplesTest, ReturnsEveryTaskAlsoOneWithoutSamples) {
  Write(1, At(now_, 1));
  const std::vector<TaskSamples> tasks = Read();
  ASSERT_EQ(tasks.size(), 2);
  EXPECT_EQ(tasks[0].task, (cluster::TaskId{"worker", 0}));
  EXPECT_TRUE(tasks[0].samples.empty());
  EXPECT_EQ(tasks[1].samples, std::vector<Sample>{At(now_, 1)});
}

TEST_F(SamplesTest, ADamagedFileIsNoError) {
  ASSERT_TRUE(base::ReplaceFile(dir_.samples({"worker", 0}), "garbage").ok());
  EXPECT_TRUE(Read()[0].samples.empty());
}

TEST_F(SamplesTest, UsageHasTheLatestValuesAndThePeaks) {
  const std::vector<Sample> samples = {At(now_ - absl::Seconds(10), 3), At(now_, 1)};
  const TaskUsage usage = UsageOf(running_, samples, absl::Seconds(3));
  ASSERT_TRUE(usage.current.has_value());
  EXPECT_EQ(usage.current->cpu->mean, 1);
  EXPECT_EQ(usage.total->cpu->mean, 2);
  EXPECT_EQ(usage.total->cpu->peak, 3);
  const nlohmann::json json = UsageToJson(usage);
  EXPECT_EQ(json["current"]["cpu_cores"], 1);
  EXPECT_EQ(json["peak"]["memory_bytes"], 2048);
  EXPECT_TRUE(json["current"]["send_bytes_per_second"].is_null());
}

TEST_F(SamplesTest, OldSamplesAreNotCurrent) {
  const std::vector<Sample> samples = {At(now_, 1)};
  EXPECT_FALSE(UsageOf(running_, samples, absl::Minutes(2)).current.has_value());
  job::TaskRecord restarted = running_;
  restarted.attempt = 1;
  EXPECT_FALSE(UsageOf(restarted, samples, absl::ZeroDuration()).current.has_value());
  job::TaskRecord ended = running_;
  ended.state = job::TaskState::kSucceeded;
  EXPECT_FALSE(UsageOf(ended, samples, absl::ZeroDuration()).current.has_value());
  EXPECT_TRUE(UsageOf(ended, samples, absl::ZeroDuration()).total.has_value());
  EXPECT_FALSE(UsageOf(running_, {}, absl::ZeroDuration()).total.has_value());
}

TEST_F(SamplesTest, ReadsTheUsageOfTasksThatHaveSamples) {
  Write(0, At(now_, 1));
  const auto usage = ReadUsage(job_, {running_, {.id = {"worker", 1}}});
  ASSERT_EQ(usage.size(), 1);
  EXPECT_TRUE(usage.begin()->second.current.has_value());
  // A clock that was set does not make the samples old; silence does.
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(dir_.samples({"worker", 0}), hour_ago);
  EXPECT_FALSE(ReadUsage(job_, {running_}).begin()->second.current.has_value());
}

TEST_F(SamplesTest, JsonHasAColumnPerQuantity) {
  Write(0, At(now_, 0.5));
  Write(0, At(now_ + absl::Milliseconds(5500), 2, 1));
  const nlohmann::json json = SamplesToJson(Read());
  ASSERT_EQ(json.size(), 2);
  EXPECT_EQ(json[0]["task"], "worker:0");
  EXPECT_EQ(json[0]["time"], nlohmann::json({1'700'000'000.0, 1'700'000'005.5}));
  EXPECT_EQ(json[0]["interval"], nlohmann::json({5.0, 5.0}));
  EXPECT_EQ(json[0]["attempt"], nlohmann::json({1, 2}));
  EXPECT_EQ(json[0]["cpu_cores"]["peak"], nlohmann::json({0.5, 2.0}));
  EXPECT_EQ(json[0]["send_bytes_per_second"]["mean"], nlohmann::json({nullptr, nullptr}));
  EXPECT_TRUE(json[1]["memory_bytes"]["mean"].is_array());
}

}  // namespace
}  // namespace muster::jobs
