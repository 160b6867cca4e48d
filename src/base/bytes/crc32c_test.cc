#include "base/bytes/crc32c.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace muster::base {
namespace {

std::string Bytes(std::initializer_list<int> bytes) { return {bytes.begin(), bytes.end()}; }

TEST(Crc32cTest, MatchesTheExamplesOfRfc3720) {
  std::string rising;
  std::string falling;
  for (int i = 0; i < 32; ++i) rising.push_back(static_cast<char>(i));
  falling.assign(rising.rbegin(), rising.rend());
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eU);
  EXPECT_EQ(Crc32c(falling), 0x113fdb5cU);
  EXPECT_EQ(Crc32c(Bytes({0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0,    0, 0, 0, 0,
                          0x14, 0,    0, 0, 0, 0, 4, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                          0x28, 0,    0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0,    0, 0, 0, 0})),
            0xd9963a56U);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(""), 0U);
}

TEST(Crc32cTest, ConcatCombinesChecksums) {
  std::mt19937 random(2);
  std::string data(70'000, '\0');
  for (char& byte : data) byte = static_cast<char>(random());
  const absl::string_view view = data;
  for (const size_t cut :
       {size_t{0}, size_t{1}, size_t{7}, size_t{4096}, size_t{65'537}, data.size()}) {
    const absl::string_view second = view.substr(cut);
    EXPECT_EQ(ConcatCrc32c(Crc32c(view.substr(0, cut)), Crc32c(second),
                           static_cast<int64_t>(second.size())),
              Crc32c(view))
        << cut;
  }
}

TEST(Crc32cTest, TheInstructionAndTheTablesAgreeAtEveryLengthAndAlignment) {
  std::mt19937 random(1);
  std::string data(40'000, '\0');
  for (char& byte : data) byte = static_cast<char>(random());
  const absl::string_view view = data;
  for (size_t size = 0; size < 900; ++size) {
    const absl::string_view part = view.substr(size % 11, size);
    ASSERT_EQ(Crc32c(part), internal::ExtendCrc32cPortable(0, part)) << size;
  }
  for (int i = 0; i < 300; ++i) {
    const absl::string_view part = view.substr(random() % 64, random() % 39'000);
    ASSERT_EQ(Crc32c(part), internal::ExtendCrc32cPortable(0, part)) << part.size();
  }
}

TEST(Crc32cTest, ExtendsInPieces) {
  const std::string data(30'000, 'x');
  const absl::string_view view = data;
  for (const size_t cut : {0, 1, 7, 8, 191, 192, 768, 12'288, 12'289, 29'999, 30'000}) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(view.substr(0, cut)), view.substr(cut)), Crc32c(view)) << cut;
    EXPECT_EQ(internal::ExtendCrc32cPortable(Crc32c(view.substr(0, cut)), view.substr(cut)),
              Crc32c(view))
        << cut;
  }
}

TEST(Crc32cTest, UnmaskInvertsMask) {
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8U);
  EXPECT_EQ(MaskCrc32c(0x8000), 0xa282ead9U);
  for (const uint32_t crc : {0U, 1U, 0x8000U, 0xffffffffU, 0xe3069283U}) {
    EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(crc)), crc);
    EXPECT_NE(MaskCrc32c(crc), crc);
  }
}

}  // namespace
}  // namespace muster::base
