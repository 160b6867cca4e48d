#include "supervise/usage/sample.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace muster::supervise {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

Sample Reading(absl::Time end, double cores, absl::Duration interval = absl::Seconds(1)) {
  return {.time = end, .interval = interval, .cpu = Load{cores, cores}};
}

TEST(SampleTest, MergesMeansByTimeAndKeepsThePeak) {
  const Sample merged = Merge(Reading(kStart, 4, absl::Seconds(1)),
                              Reading(kStart + absl::Seconds(3), 1, absl::Seconds(3)));
  EXPECT_EQ(merged.time, kStart + absl::Seconds(3));
  EXPECT_EQ(merged.interval, absl::Seconds(4));
  EXPECT_DOUBLE_EQ(merged.cpu->mean, 1.75);
  EXPECT_DOUBLE_EQ(merged.cpu->peak, 4);
  EXPECT_FALSE(merged.memory.has_value());
}

TEST(SampleTest, AnAbsentValueDoesNotCountAsZero) {
  Sample known = Reading(kStart, 1);
  known.sent = Load{100, 200};
  EXPECT_EQ(Merge(known, Reading(kStart, 1)).sent, known.sent);
  EXPECT_EQ(Merge(Reading(kStart, 1), known).sent, known.sent);
}

TEST(SampleTest, MergesReadingsWithoutDuration) {
  const Sample merged =
      Merge(Reading(kStart, 1, absl::ZeroDuration()), Reading(kStart, 3, absl::ZeroDuration()));
  EXPECT_DOUBLE_EQ(merged.cpu->mean, 2);
}

TEST(SampleTest, DownsamplingKeepsPeakMeanAndTotalTime) {
  std::vector<Sample> samples;
  for (int i = 0; i < 1000; ++i) {
    samples.push_back(Reading(kStart + absl::Seconds(i), i == 137 ? 64 : 1));
  }
  const std::vector<Sample> merged = Downsample(samples, 100);
  EXPECT_LE(merged.size(), 100);
  EXPECT_GE(merged.size(), 50);
  absl::Duration covered;
  double core_seconds = 0;
  double peak = 0;
  for (const Sample& sample : merged) {
    covered += sample.interval;
    core_seconds += sample.cpu->mean * absl::ToDoubleSeconds(sample.interval);
    peak = std::max(peak, sample.cpu->peak);
  }
  EXPECT_EQ(covered, absl::Seconds(1000));
  EXPECT_NEAR(core_seconds, 1063, 1e-6);
  EXPECT_EQ(peak, 64);
  EXPECT_EQ(merged.back().time, samples.back().time);
}

// A job of a month: samples are appended to what is left of the earlier ones.
TEST(SampleTest, RepeatedDownsamplingMergesEvenly) {
  constexpr absl::Duration kInterval = absl::Milliseconds(5003);
  std::vector<Sample> samples;
  absl::Time time = kStart;
  for (int i = 0; i < 518'400; ++i) {
    time += kInterval;
    samples.push_back(Reading(time, i % 2, kInterval));
    if (samples.size() == 1024) samples = Downsample(samples, 512);
  }
  samples = Downsample(samples, 512);
  ASSERT_LE(samples.size(), 512);
  EXPECT_GE(samples.size(), 250);
  absl::Duration longest, covered;
  double core_seconds = 0;
  for (const Sample& sample : samples) {
    longest = std::max(longest, sample.interval);
    covered += sample.interval;
    core_seconds += sample.cpu->mean * absl::ToDoubleSeconds(sample.interval);
  }
  EXPECT_EQ(covered, 518'400 * kInterval);
  EXPECT_NEAR(core_seconds, absl::ToDoubleSeconds(covered) / 2, 1);
  EXPECT_LE(longest, 2 * covered / 256);
}

TEST(SampleTest, DownsamplesReadingsOfAClockThatWasSetBack) {
  std::vector<Sample> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(Reading(kStart - absl::Hours(i % 7), 1));
  EXPECT_LE(Downsample(samples, 10).size(), 10);
  EXPECT_EQ(Downsample(samples, 1).size(), 1);
}

TEST(SampleTest, LeavesAFewSamplesAlone) {
  const std::vector<Sample> samples = {Reading(kStart, 1), Reading(kStart + absl::Seconds(1), 2)};
  EXPECT_EQ(Downsample(samples, 2), samples);
  EXPECT_TRUE(Downsample({}, 2).empty());
}

}  // namespace
}  // namespace muster::supervise
