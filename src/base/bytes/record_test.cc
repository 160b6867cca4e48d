#include "base/bytes/record.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(RecordTest, MatchesTheDocumentedExample) {
  // The example of docs/formats/summary.md.
  const std::string data(
      "\x09\x00\x00\x10\x40\xfc\x54\xd9\x41\x1a\x0d"
      "brain.Event:2",
      24);
  std::string framed;
  AppendRecord(data, framed);
  EXPECT_EQ(framed.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(framed.substr(36), "\x33\x8d\x2f\xe9");
}

TEST(RecordTest, EveryFlippedBitIsDetected) {
  std::string framed;
  AppendRecord("some data", framed);
  for (size_t bit = 0; bit < framed.size() * 8; ++bit) {
    std::string damaged = framed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const absl::string_view view = damaged;
    const bool fine =
        DataLength(view.substr(0, 12)).ok() && CheckData(view.substr(12, 9), view.substr(21)).ok();
    EXPECT_FALSE(fine) << bit;
  }
}

}  // namespace
}  // namespace muster::base
