#include "cli/job/progress_line.h"

#include "base/text/terminal_text.h"
#include "cli/terminal/terminal_testing.h"
#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using jobs::Progress;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Progress Step(int64_t step, int64_t steps = 1000) { return {.step = step, .steps = steps}; }

Progress Full() {
  return {.step = 760, .steps = 2000, .loss = 0.07123, .examples_per_second = 5321.4};
}

class ProgressLineTest : public testing::Test {
 protected:
  static std::string Line(int columns, const Progress& progress,
                          std::optional<absl::Duration> left = absl::Seconds(42)) {
    return ProgressLine(Screen(columns).terminal(), progress, left);
  }
  const ScopedVariable term_{"TERM", "xterm"};
  const ScopedVariable plain_{"NO_COLOR", "1"};
  const ScopedVariable all_{"LC_ALL", nullptr};
  const ScopedVariable ctype_{"LC_CTYPE", nullptr};
  const ScopedVariable lang_{"LANG", "en_US.UTF-8"};
};

TEST_F(ProgressLineTest, AdaptsToTheWidth) {
  EXPECT_EQ(Line(100, Full()),
            "  38% ███████▌              step 760/2000  loss 0.0712  5,321 examples/s  0:42 left");
  EXPECT_EQ(Line(80, Full()),
            "  38% ███▊        step 760/2000  loss 0.0712  5,321 examples/s  0:42 left");
  EXPECT_EQ(Line(70, Full()), "  38%  step 760/2000  loss 0.0712  5,321 examples/s  0:42 left");
  EXPECT_EQ(Line(50, Full()), "  38%  step 760/2000  loss 0.0712  0:42 left");
  EXPECT_EQ(Line(40, Full()), "  38%  step 760/2000  0:42 left");
  EXPECT_EQ(Line(21, Full()), "  38%  step 760/2000");
  for (int columns = 1; columns < 120; ++columns) {
    EXPECT_LT(base::DisplayWidth(Line(columns, Full())), columns);
  }
}

TEST_F(ProgressLineTest, UsesAsciiIfTheLocaleIsNotUtf8) {
  const ScopedVariable lang("LC_ALL", "C");
  EXPECT_EQ(
      Line(100, Full()),
      "  38% [#######             ]  step 760/2000  loss 0.0712  5,321 examples/s  0:42 left");
}

TEST_F(ProgressLineTest, HasNoColourWithNoColorSet) {
  EXPECT_THAT(Line(100, Full()), Not(HasSubstr("\x1b")));
  const ScopedVariable wanted("NO_COLOR", nullptr);
  EXPECT_THAT(Line(100, Full()), HasSubstr("\x1b[36m███████▌\x1b[0m"));
}

TEST_F(ProgressLineTest, BeginningEndAndBeyond) {
  EXPECT_EQ(Line(60, Step(0, 10), std::nullopt), "   0%                       step 0/10");
  EXPECT_EQ(Line(60, Step(10, 10), std::nullopt), " 100% ████████████████████  step 10/10");
  EXPECT_EQ(Line(60, Step(1'000'000, 10), std::nullopt),
            " 100% ████████████████████  step 1000000/10");
  EXPECT_THAT(Line(60, Step(1999, 2000)), StartsWith("  99%"));
  EXPECT_EQ(Line(60, {.step = 12}), "  step 12  0:42 left");
}

TEST_F(ProgressLineTest, FormatsTheTimeLeft) {
  const auto left = [](absl::Duration time) {
    const std::string line = Line(100, Step(1), time);
    return line.substr(line.rfind("  ") + 2);
  };
  EXPECT_EQ(left(absl::Milliseconds(200)), "0:01 left");
  EXPECT_EQ(left(absl::Seconds(605)), "10:05 left");
  EXPECT_EQ(left(absl::Seconds(3723)), "1:02:03 left");
  EXPECT_EQ(left(absl::Hours(123)), "5d03h left");
}

}  // namespace
}  // namespace muster::cli
