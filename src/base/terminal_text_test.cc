#include "base/terminal_text.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(PrintableTest, KeepsTextAndColour) {
  EXPECT_EQ(Printable("héllo\t日本"), "héllo\t日本");
  EXPECT_EQ(Printable("\x1b[31mred\x1b[0m"), "\x1b[31mred\x1b[0m");
}

TEST(PrintableTest, DefusesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("\x1b[2Jx"), "^[[2Jx");
  EXPECT_EQ(Printable("\x1b]0;title\x07"), "^[]0;title^G");
  EXPECT_EQ(Printable(absl::string_view("a\0b\x7f", 4)), "a^@b^?");
}

TEST(PrintableTest, ReplacesBrokenUtf8) {
  EXPECT_EQ(Printable("a\xff"
                      "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(Printable("\xe2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // truncated
  EXPECT_EQ(Printable("\xc0\xaf"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // surrogate
}

TEST(WidthTest, CountsCells) {
  EXPECT_EQ(DisplayWidth("abc"), 3);
  EXPECT_EQ(DisplayWidth("日本"), 4);
  EXPECT_EQ(DisplayWidth("\x1b[31mred\x1b[0m"), 3);
  EXPECT_EQ(Ellipsize("abcdef", 4), "abc…");
  EXPECT_EQ(Ellipsize("abc", 4), "abc");
  EXPECT_EQ(Ellipsize("日本語", 4), "日…");
}

TEST(ShellTest, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(ShellJoin({"python3", "train.py", "--lr=0.1"}), "python3 train.py --lr=0.1");
  EXPECT_EQ(ShellJoin({"echo", "a b", "", "it's"}), "echo 'a b' '' 'it'\\''s'");
}

}  // namespace
}  // namespace muster
