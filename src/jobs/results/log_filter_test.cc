#include "jobs/results/log_filter.h"

#include "gmock/gmock.h"

namespace muster::jobs {
namespace {

using testing::HasSubstr;

bool Selects(const LogQuery& query, const std::string& text, int attempt = 0) {
  const auto condition = MakeLogCondition(query);
  EXPECT_TRUE(condition.ok()) << condition.status();
  return condition.ok() && (*condition)({.attempt = attempt, .text = text});
}

TEST(LogFilterTest, MatchesExtendedRegularExpressions) {
  EXPECT_TRUE(Selects({.pattern = "loss [0-9]+|error"}, "step 1, loss 12"));
  EXPECT_TRUE(Selects({.pattern = "^step .*12$"}, "step 1, loss 12"));
  EXPECT_FALSE(Selects({.pattern = "^loss"}, "step 1, loss 12"));
  EXPECT_TRUE(Selects({.pattern = "end"}, std::string("a\0 the end", 10)));
  EXPECT_TRUE(Selects({.pattern = "x+y"}, std::string(64 << 10, 'x') + "y"));
}

TEST(LogFilterTest, CountsAttemptsFromOne) {
  EXPECT_TRUE(Selects({.attempt = 1}, "x", 0));
  EXPECT_FALSE(Selects({.attempt = 2}, "x", 0));
  EXPECT_TRUE(Selects({.pattern = "x", .attempt = 2}, "x", 1));
  EXPECT_FALSE(Selects({.pattern = "y", .attempt = 2}, "x", 1));
}

TEST(LogFilterTest, ReportsMistakes) {
  const absl::Status bad = MakeLogCondition({.pattern = "a(b"}).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad.message()), HasSubstr("pattern 'a(b': "));
  EXPECT_EQ(MakeLogCondition({.attempt = 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace muster::jobs
