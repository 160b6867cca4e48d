#include "jobs/results/metrics.h"

#include <filesystem>

#include "base/files/files.h"
#include "gmock/gmock.h"
#include "jobs/testing.h"
#include "summary/event_writer.h"
#include "supervise/log/log_writer.h"

namespace muster::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;

// A job with a chief, a worker and a ps in the history, without processes.
class MetricsTest : public testing::Test {
 protected:
  MetricsTest() : dir_(service_->home() + "/jobs/run-1") {
    EXPECT_TRUE(base::MakeDirectories(dir_.logs()).ok());
    job_ = {.id = "run-1",
            .name = "run",
            .platform = "local",
            .created = absl::Now() - absl::Minutes(1),
            .directory = dir_.path(),
            .model_dir = temp_.path() + "/model"};
    job::StateChange change{.job = job_};
    for (const char* role : {"worker", "chief", "ps"}) change.tasks.push_back({.id = {role, 0}});
    EXPECT_TRUE((*service_->history())->Apply(change).ok());
  }

  void WriteMetrics(const std::string& role, const std::string& text) {
    EXPECT_TRUE(base::MakeDirectories(dir_.run_dir({role, 0})).ok());
    EXPECT_TRUE(base::ReplaceFile(dir_.metrics({role, 0}), text).ok());
  }
  void WriteOutput(const std::string& role, const std::string& text) {
    auto log = supervise::LogWriter::Open(dir_.logs(), {role, 0}, {});
    ASSERT_TRUE(log.ok()) << log.status();
    (*log)->BeginAttempt(0);
    EXPECT_TRUE((*log)->Write(text, absl::Now()).ok());
  }
  void WriteEvents(const std::string& folder, const std::string& tag, double value) {
    EXPECT_TRUE(base::MakeDirectories(folder).ok());
    auto events = summary::EventWriter::Open(folder, "test");
    ASSERT_TRUE(events.ok()) << events.status();
    (*events)->Scalar(tag, 10, value);
    EXPECT_TRUE((*events)->Flush().ok());
  }
  JobMetrics Read() {
    auto metrics = ReadMetrics(*service_, job_);
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return *std::move(metrics);
  }

  const base::TempDir temp_;
  TestService service_;
  const supervise::JobDir dir_;
  job::JobRecord job_;
};

TEST_F(MetricsTest, AJobWithoutAnyHasNone) {
  const JobMetrics metrics = Read();
  EXPECT_THAT(metrics.series, IsEmpty());
  EXPECT_THAT(metrics.problems, IsEmpty());
}

TEST_F(MetricsTest, TheFirstSourceOfAMetricCounts) {
  WriteEvents(job_.model_dir, "loss", 1);
  WriteEvents(job_.model_dir + "/eval", "accuracy", 0.5);
  WriteMetrics("chief", "{\"step\": 10, \"loss\": 2, \"lr\": 2}\n");
  WriteMetrics("worker", "{\"step\": 10, \"lr\": 3, \"own\": 3}\n");
  WriteMetrics("ps", "{\"step\": 10, \"hidden\": 1}\n");
  WriteOutput("worker", "step 10, loss 4, acc 4\n");
  const JobMetrics metrics = Read();
  EXPECT_THAT(metrics.series,
              ElementsAre(Key("eval/accuracy"), Key("loss"), Key("lr"), Key("own")));
  EXPECT_EQ(metrics.series.at("loss").back().value, 1);
  EXPECT_EQ(metrics.series.at("lr").back().value, 2);
}

TEST_F(MetricsTest, OutputCountsWithoutOtherSources) {
  WriteOutput("worker", "step 10, loss 4\n");
  WriteOutput("ps", "step 10, acc 4\n");
  EXPECT_THAT(Read().series, ElementsAre(Key("loss")));
}

TEST_F(MetricsTest, PointsOfOtherRunsAreLeftOut) {
  WriteEvents(job_.model_dir, "loss", 1);
  job_.finished = absl::Now() - absl::Seconds(30);
  EXPECT_THAT(Read().series, IsEmpty());
  job_.finished.reset();
  job_.created = absl::Now() + absl::Minutes(1);
  EXPECT_THAT(Read().series, IsEmpty());
}

TEST_F(MetricsTest, ARunThatWasMovedAsideKeepsItsNames) {
  WriteEvents(job_.model_dir + "/superseded-1", "loss", 1);
  WriteEvents(job_.model_dir + "/superseded-1/eval", "accuracy", 1);
  EXPECT_THAT(Read().series, ElementsAre(Key("eval/accuracy"), Key("loss")));
}

TEST_F(MetricsTest, AnIncompleteLineIsLeftForTheNextTime) {
  WriteMetrics("chief", "{\"step\": 1, \"loss\": 2}\nnonsense\n{\"step\": 2, \"loss\": 1}");
  EXPECT_THAT(Read().series.at("loss"), SizeIs(1));
  job_.state = job::JobState::kSucceeded;
  EXPECT_THAT(Read().series.at("loss"), SizeIs(2));
}

TEST_F(MetricsTest, DamagedSourcesAreProblemsAndTheOthersCount) {
  WriteMetrics("chief", "{\"step\": 1, \"loss\": 2}\n");
  EXPECT_TRUE(base::MakeDirectories(dir_.metrics({"worker", 0})).ok());
  EXPECT_TRUE(base::MakeDirectories(job_.model_dir).ok());
  EXPECT_TRUE(base::ReplaceFile(job_.model_dir + "/events.out.tfevents.1", "damaged bytes").ok());
  const JobMetrics metrics = Read();
  EXPECT_THAT(metrics.series, ElementsAre(Key("loss")));
  EXPECT_THAT(metrics.problems, ElementsAre(HasSubstr("tfevents.1"), HasSubstr("metrics.jsonl")));
  job_.model_dir = "memory://none/run";
  EXPECT_THAT(Read().series, ElementsAre(Key("loss")));
}

}  // namespace
}  // namespace muster::jobs
