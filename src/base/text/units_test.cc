#include "base/text/units.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(DurationTest, ParsesCommonForms) {
  EXPECT_EQ(*ParseDuration("90s"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("2d"), absl::Hours(48));
  EXPECT_EQ(*ParseDuration("60"), absl::Seconds(60));
  EXPECT_EQ(*ParseDuration("0"), absl::ZeroDuration());
  EXPECT_EQ(*ParseDuration("1.5m"), absl::Seconds(90));
}

TEST(DurationTest, RejectsTheRest) {
  for (const char* text :
       {"", "s", "5x", "-5s", "5 s", "inf", "nan", "1e400", "9999999999d", "1h30", "-1"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(DurationTest, FormatIsParsedBack) {
  for (const char* text : {"0s", "90ms", "59s", "1m30s", "2h", "1d2h3m4s5ms"}) {
    EXPECT_EQ(DurationToString(*ParseDuration(text)), text);
  }
}

TEST(BytesTest, ParsesAndFormats) {
  EXPECT_EQ(*ParseBytes("512"), 512);
  EXPECT_EQ(*ParseBytes("64KiB"), 64 << 10);
  EXPECT_EQ(*ParseBytes("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(*ParseBytes("100mb"), 100 << 20);
  EXPECT_EQ(*ParseBytes("1Gi"), 1 << 30);
  for (const char* text : {"", "B", "5X", "-5", "1e99", "99999999P", "5 KK", "5I", "5IB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  EXPECT_EQ(FormatBytes(100), "100B");
  EXPECT_EQ(FormatBytes(1536), "1.5KiB");
  EXPECT_EQ(FormatBytes(int64_t{256} << 20), "256MiB");
}

TEST(PluralTest, SingularOnlyForOne) {
  EXPECT_EQ(Plural(1, "task"), "1 task");
  EXPECT_EQ(Plural(0, "task"), "0 tasks");
  EXPECT_EQ(Plural(2, "task"), "2 tasks");
  EXPECT_EQ(Plural(1, "process"), "1 process");
  EXPECT_EQ(Plural(3, "process"), "3 processes");
}

TEST(ElapsedTest, IsShort) {
  EXPECT_EQ(FormatElapsed(absl::Milliseconds(5340)), "5.3s");
  EXPECT_EQ(FormatElapsed(absl::Seconds(15)), "15s");
  EXPECT_EQ(FormatElapsed(absl::Seconds(185)), "3m05s");
  EXPECT_EQ(FormatElapsed(absl::Minutes(134)), "2h14m");
  EXPECT_EQ(FormatElapsed(absl::Hours(123)), "5d03h");
  EXPECT_EQ(FormatElapsed(-absl::Seconds(5)), "0.0s");
  EXPECT_EQ(FormatAge(absl::Seconds(1)), "just now");
  EXPECT_EQ(FormatAge(absl::Seconds(61)), "1 minute ago");
  EXPECT_EQ(FormatAge(absl::Hours(49)), "2 days ago");
}

}  // namespace
}  // namespace muster::base
