#include "cli/job/log_view.h"

#include "cli/terminal/terminal_testing.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using testing::HasSubstr;

supervise::LogLine Line(const cluster::TaskId& task, std::string text) {
  return {.task = task,
          .attempt = 1,
          .time = absl::FromUnixSeconds(1'700'000'000),
          .text = std::move(text)};
}

TEST(LogViewTest, PrefixesAreAligned) {
  FileOutput file;
  LogView view(file.terminal(), {});
  view.Expect({"evaluator", 0});
  view.Print(Line({"ps", 0}, "a"));
  view.Print(Line({"evaluator", 0}, "b"));
  view.Print(Line({"worker", 10}, ""));
  EXPECT_EQ(file.Text(), "ps:0        | a\nevaluator:0 | b\nworker:10   | \n");
}

TEST(LogViewTest, ALaterTaskWithALongerNameWidensThePrefix) {
  FileOutput file;
  LogView view(file.terminal(), {});
  view.Print(Line({"ps", 0}, "a"));
  view.Print(Line({"worker", 0}, "b"));
  view.Print(Line({"ps", 0}, "c"));
  EXPECT_EQ(file.Text(), "ps:0 | a\nworker:0 | b\nps:0     | c\n");
}

TEST(LogViewTest, ASingleTaskHasNoPrefixAndAFileGetsItsBytes) {
  FileOutput file;
  LogView view(file.terminal(), {.prefix = false});
  const std::string odd("\xff\x1b[2J\0x", 7);
  view.Print(Line({"ps", 0}, odd));
  EXPECT_EQ(file.Text(), odd + "\n");
}

TEST(LogViewTest, ATerminalGetsOnlyPrintableText) {
  const ScopedVariable term("TERM", "xterm");
  const ScopedVariable wanted("NO_COLOR", nullptr);
  Screen screen(80);
  LogView view(screen.terminal(), {});
  view.Print(Line({"ps", 0}, "\xff\x1b[2Jx"));
  view.Print(Line({"worker", 0}, "y"));
  EXPECT_EQ(screen.Text(),
            "\x1b[36mps:0 |\x1b[0m \xEF\xBF\xBD^[[2Jx\n\x1b[32mworker:0 |\x1b[0m y\n");
}

TEST(LogViewTest, TimesComeFirst) {
  FileOutput file;
  LogView view(file.terminal(), {.timestamps = true});
  view.Print(Line({"ps", 0}, "a"));
  EXPECT_THAT(file.Text(), testing::MatchesRegex("2023-11-1[45] [0-9:]+ ps:0 \\| a\n"));
}

TEST(LogViewTest, JsonIsOneObjectPerLineForAnyBytes) {
  FileOutput file;
  LogView view(file.terminal(), {.json = true});
  view.Print(Line({"ps", 0}, "a\xff\tb"));
  const auto json = nlohmann::json::parse(file.Text());
  EXPECT_EQ(json["task"], "ps:0");
  EXPECT_EQ(json["attempt"], 2);
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20+00:00");
  EXPECT_EQ(json["text"], "a\xEF\xBF\xBD\tb");
}

}  // namespace
}  // namespace muster::cli
