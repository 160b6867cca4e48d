#include "platform/vertex/log_copy.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::vertex {
namespace {

class VertexLogCopy : public ::testing::Test {
 protected:
  VertexLogCopy() {
    pools_[0] = {{"chief", 0}};
    pools_[1] = {{"worker", 0}, {"worker", 1}};
  }

  std::unique_ptr<LogCopy> Open() const {
    auto copy = LogCopy::Open(temp_.path(), pools_, {});
    EXPECT_TRUE(copy.ok()) << copy.status();
    return *std::move(copy);
  }
  std::string Log(const std::string& stem) const {
    return base::ReadFile(absl::StrCat(temp_.path(), "/", stem, ".log")).value_or("");
  }
  static LogEntry Entry(const std::string& id, const std::string& message,
                        const std::string& task = "workerpool1-1") {
    return {.timestamp = "2026-01-01T00:00:31.000000001Z",
            .insert_id = id,
            .severity = "INFO",
            .task = task,
            .message = message};
  }

  Pools pools_;
  const base::TempDir temp_;
};

TEST_F(VertexLogCopy, LinesGoToTheirTasksWithTheirSeverity) {
  auto copy = Open();
  ASSERT_TRUE(copy->Take(Entry("a", "one\ntwo\n")).ok());
  ASSERT_TRUE(copy->Take(Entry("b", "Job is running.", "service")).ok());
  LogEntry error = Entry("c", "bad", "workerpool0-0");
  error.severity = "ERROR";
  ASSERT_TRUE(copy->Take(error).ok());
  ASSERT_TRUE(copy->Save().ok());
  EXPECT_EQ(Log("worker-1"), "INFO :: one\nINFO :: two\n");
  EXPECT_EQ(Log("chief-0"), "INFO :: [Vertex AI] Job is running.\nERROR :: bad\n");
}

TEST_F(VertexLogCopy, UnsavedEntriesAreCopiedAgainOnce) {
  {
    auto copy = Open();
    ASSERT_TRUE(copy->Take(Entry("a", "one")).ok());
    ASSERT_TRUE(copy->Save().ok());
    ASSERT_TRUE(copy->Take(Entry("b", "two")).ok());
    ASSERT_TRUE(copy->Take(Entry("c", "first of this task", "workerpool1-0")).ok());
  }
  auto copy = Open();
  EXPECT_EQ(copy->taken(), 1U);
  ASSERT_TRUE(copy->Take(Entry("a", "one")).ok());  // a duplicate
  ASSERT_TRUE(copy->Take(Entry("b", "two")).ok());
  ASSERT_TRUE(copy->Take(Entry("c", "first of this task", "workerpool1-0")).ok());
  ASSERT_TRUE(copy->Save().ok());
  EXPECT_EQ(Log("worker-1"), "INFO :: one\nINFO :: two\n");
  EXPECT_EQ(Log("worker-0"), "INFO :: first of this task\n");
}

TEST_F(VertexLogCopy, ADamagedStateStartsOver) {
  ASSERT_TRUE(base::ReplaceFile(temp_.path() + "/vertex.copy", R"({"timestamp": 5})").ok());
  EXPECT_EQ(Open()->latest(), std::nullopt);
}

TEST_F(VertexLogCopy, FingerprintsAreDroppedWithTheirLog) {
  {
    auto copy = Open();
    ASSERT_TRUE(copy->Take(Entry("a", "one")).ok());
    ASSERT_TRUE(copy->Save().ok());
  }
  ASSERT_TRUE(base::ReplaceFile(temp_.path() + "/vertex.taken", "cut").ok());
  auto copy = Open();
  EXPECT_EQ(copy->taken(), 0U);
  ASSERT_TRUE(copy->Take(Entry("a", "one")).ok());
  EXPECT_EQ(Log("worker-1"), "INFO :: one\n");
}

TEST_F(VertexLogCopy, LateEntriesAreCopiedOnce) {
  LogEntry late = Entry("late", "late");
  late.timestamp = "2026-01-01T00:00:01Z";
  for (int i = 0; i < 2; ++i) {
    auto copy = Open();
    ASSERT_TRUE(copy->Take(Entry("a", "one")).ok());
    ASSERT_TRUE(copy->Take(late).ok());
    // The same insert id at another time is another entry.
    LogEntry other = late;
    other.timestamp = "2026-01-01T00:00:02Z";
    ASSERT_TRUE(copy->Take(other).ok());
    ASSERT_TRUE(copy->Save().ok());
    EXPECT_EQ(absl::ToUnixSeconds(*copy->latest()), 1767225631);
  }
  EXPECT_EQ(Log("worker-1"), "INFO :: one\nINFO :: late\nINFO :: late\n");
}

TEST(VertexLogFilter, NamesTheJobTheTimesAndTheTask) {
  const absl::Time before = absl::FromUnixMicros(1767225665527495);
  EXPECT_EQ(LogFilter({.job = "42", .before = before}),
            "resource.type=\"ml_job\" AND resource.labels.job_id=\"42\" AND "
            "timestamp<\"2026-01-01T00:01:05.527495Z\"");
  EXPECT_EQ(LogFilter({.job = "4\"2", .from = before, .task = "workerpool1-0"}),
            "resource.type=\"ml_job\" AND resource.labels.job_id=\"4\\\"2\" AND "
            "resource.labels.task_name=\"workerpool1-0\" AND "
            "timestamp>=\"2026-01-01T00:01:05.527495Z\"");
}

}  // namespace
}  // namespace muster::vertex
