#include "base/text/utf8.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(Utf8Test, CodePointsOfEveryLength) {
  const auto decoded = [](absl::string_view text) {
    const CodePoint code = DecodeUtf8(text);
    EXPECT_EQ(code.bytes, text.size());
    return code.value;
  };
  EXPECT_EQ(decoded("a"), 0x61U);
  EXPECT_EQ(decoded("ß"), 0xDFU);
  EXPECT_EQ(decoded("\xE0\xA0\x80"), 0x800U);
  EXPECT_EQ(decoded("€"), 0x20ACU);
  EXPECT_EQ(decoded("\xF0\x90\x80\x80"), 0x10000U);
  EXPECT_EQ(decoded("\xF4\x8F\xBF\xBF"), 0x10FFFFU);
}

TEST(Utf8Test, OnlyTheFirstIsDecoded) {
  EXPECT_EQ(DecodeUtf8("é!").bytes, 2U);
  EXPECT_EQ(DecodeUtf8("a\xFF").bytes, 1U);
}

TEST(Utf8Test, RejectsInvalidUtf8) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a ß € 😀"));
  for (const char* text : {
           "\x80",              // a continuation byte alone
           "\xC3",              // cut
           "\xE2\x82",          // cut
           "\xC3z",             // not continued
           "\xC0\xAF",          // overlong
           "\xC1\xBF",          // overlong
           "\xE0\x9F\xBF",      // overlong
           "\xF0\x8F\xBF\xBF",  // overlong
           "\xED\xA0\x80",      // a surrogate
           "\xF4\x90\x80\x80",  // beyond the last
           "\xF5\x80\x80\x80",
           "\xFF",
       }) {
    EXPECT_EQ(DecodeUtf8(text).bytes, 0U) << text;
    EXPECT_FALSE(IsUtf8(std::string("fine ") + text + " fine")) << text;
  }
}

}  // namespace
}  // namespace muster::base
