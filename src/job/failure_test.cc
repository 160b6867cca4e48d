#include "job/failure.h"

#include "gtest/gtest.h"

namespace muster::job {
namespace {

FailureReport Report() {
  FailureReport report;
  report.summary = "worker:1 failed: exit code 1";
  report.first = TaskFailure{.task = {"worker", 1},
                             .attempt = 2,
                             .time = absl::FromUnixMillis(1'700'000'000'123),
                             .exit_code = 1,
                             .cause = "exit code 1",
                             .advice = "read the log",
                             .last_lines = {"Traceback", "  ümlaut \"quoted\"\t"}};
  report.victims = {"ps:0 stopped by muster"};
  report.not_restarted = "worker:1: max_restarts (2) exceeded";
  return report;
}

TEST(FailureTest, RoundTrip) {
  const auto read = FailureFromJson(FailureToJson(Report()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->summary, Report().summary);
  EXPECT_EQ(read->victims, Report().victims);
  EXPECT_EQ(read->not_restarted, Report().not_restarted);
  ASSERT_TRUE(read->first.has_value());
  EXPECT_EQ(read->first->task, (cluster::TaskId{"worker", 1}));
  EXPECT_EQ(read->first->attempt, 2);
  EXPECT_EQ(read->first->time, Report().first->time);
  EXPECT_EQ(read->first->exit_code, 1);
  EXPECT_EQ(read->first->cause, "exit code 1");
  EXPECT_EQ(read->first->advice, "read the log");
  EXPECT_EQ(read->first->last_lines, Report().first->last_lines);
}

TEST(FailureTest, AbsentMembersStayAbsent) {
  FailureReport report = Report();
  report.first->exit_code.reset();
  EXPECT_EQ(FailureFromJson(FailureToJson(report))->first->exit_code, std::nullopt);
  report.not_restarted.clear();
  EXPECT_EQ(FailureFromJson(FailureToJson(report))->not_restarted, "");
  report.first.reset();
  EXPECT_FALSE(FailureFromJson(FailureToJson(report))->first.has_value());
}

TEST(FailureTest, LastLinesMayBeAnyBytes) {
  FailureReport report = Report();
  report.first->last_lines = {"\xFF\xFE binary", std::string("nul \0 byte", 10)};
  const auto read = FailureFromJson(FailureToJson(report));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->first->last_lines[0], "\xEF\xBF\xBD\xEF\xBF\xBD binary");
  EXPECT_EQ(read->first->last_lines[1], report.first->last_lines[1]);
}

TEST(FailureTest, InvalidTextIsAnError) {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"summary": 5, "victims": []})",
                           R"({"summary": "", "victims": [], "first": {}})",
                           R"({"summary": "", "victims": [], "first": {"task": "a:b"}})"}) {
    EXPECT_EQ(FailureFromJson(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace muster::job
