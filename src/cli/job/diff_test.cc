#include "cli/job/diff.h"

#include "cli/terminal/terminal_testing.h"
#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

std::string PlainDiff(const std::string& before, const std::string& after) {
  FileOutput file;
  return UnifiedDiff(file.terminal(), before, after);
}

TEST(DiffTest, EqualTextsHaveNoDiff) {
  EXPECT_EQ(PlainDiff("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(PlainDiff("", ""), "");
}

TEST(DiffTest, ShowsThreeLinesOfContext) {
  EXPECT_EQ(PlainDiff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
                      "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n"),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(DiffTest, ShowsInsertionsAndDeletions) {
  EXPECT_THAT(PlainDiff("", "new\n"), HasSubstr("+new\n"));
  EXPECT_THAT(PlainDiff("old\n", ""), HasSubstr("-old\n"));
  EXPECT_THAT(PlainDiff("a\n", "a\nb"), HasSubstr(" a\n+b\n"));
}

TEST(DiffTest, IsColouredOnATerminal) {
  const ScopedVariable term("TERM", "xterm");
  const ScopedVariable wanted("NO_COLOR", nullptr);
  Screen screen(80);
  const std::string text = UnifiedDiff(screen.terminal(), "a\nb\n", "a\nc\n");
  EXPECT_THAT(text, HasSubstr("\x1b[31m-b\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("\x1b[32m+c\x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("\n a\n"));
}

}  // namespace
}  // namespace muster::cli
