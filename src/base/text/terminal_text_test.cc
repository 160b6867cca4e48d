#include "base/text/terminal_text.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(PrintableTest, KeepsTextAndColour) {
  EXPECT_EQ(Printable("héllo\t日本"), "héllo\t日本");
  EXPECT_EQ(Printable("\x1b[31mred\x1b[0m"), "\x1b[31mred\x1b[0m");
}

TEST(PrintableTest, EscapesControlSequences) {
  EXPECT_EQ(Printable("\x1b[2Jx"), "^[[2Jx");
  EXPECT_EQ(Printable("\x1b]0;title\x07"), "^[]0;title^G");
  EXPECT_EQ(Printable(absl::string_view("a\0b\x7f", 4)), "a^@b^?");
}

TEST(PrintableTest, ReplacesBidirectionalControls) {
  EXPECT_EQ(Printable("a\u202Eb\u2066c\u2069"), "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(Printable("\u009B2J"), "\uFFFD2J");
  EXPECT_EQ(Printable("שלום"), "שלום");
}

TEST(PrintableTest, BasicColoursCannotHideText) {
  const auto basic = [](absl::string_view text) { return Printable(text, Colours::kBasic); };
  EXPECT_EQ(basic("\x1b[31mred\x1b[0m"), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(basic("\x1b[8mhidden"), "^[[8mhidden");
  EXPECT_EQ(basic("\x1b[30;40mblack"), "^[[30;40mblack");
  EXPECT_EQ(Printable("\x1b[31mred", Colours::kNone), "^[[31mred");
}

TEST(PrintableTest, KeepsLineEndsOnRequest) {
  EXPECT_EQ(Printable("a\nb\r\n"), "a^Jb^M^J");
  EXPECT_EQ(Printable("a\nb\r\n", Colours::kAll, LineEnds::kKept), "a\nb^M\n");
  EXPECT_EQ(Printable("\x1b[31mred\nplain", Colours::kBasic, LineEnds::kKept),
            "\x1b[31mred\x1b[0m\nplain");
}

TEST(PrintableTest, ReplacesInvalidUtf8) {
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
  EXPECT_EQ(EllipsizeMiddle("abcdefgh", 5), "ab…gh");
  EXPECT_EQ(EllipsizeMiddle("abcdefgh", 4), "a…gh");
  EXPECT_EQ(EllipsizeMiddle("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(EllipsizeMiddle("日本語日本語", 6), "日…語");
}

TEST(ShellTest, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(ShellJoin({"python3", "train.py", "--lr=0.1"}), "python3 train.py --lr=0.1");
  EXPECT_EQ(ShellJoin({"echo", "a b", "", "it's"}), "echo 'a b' '' 'it'\\''s'");
}

}  // namespace
}  // namespace muster::base
