#include "data/idx/gunzip.h"

#include "absl/strings/str_cat.h"
#include "data/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::HasSubstr;

TEST(GunzipTest, ReadsPieceByPiece) {
  const std::string text(3'000'000, 'x');
  const std::string compressed = Gzip(text);
  Gunzip gunzip(compressed);
  EXPECT_EQ(gunzip.Read(5).value(), "xxxxx");
  EXPECT_EQ(gunzip.Read(2'000'000).value().size(), 2'000'000u);
  EXPECT_EQ(gunzip.Read(2'000'000).value().size(), 999'995u);
  EXPECT_EQ(gunzip.Read(10).value(), "");
}

TEST(GunzipTest, MembersFollowEachOther) {
  EXPECT_EQ(GunzipAll(absl::StrCat(Gzip("ab"), Gzip(""), Gzip("c")), 3).value(), "abc");
}

TEST(GunzipTest, NeverReturnsMoreThanRequested) {
  const std::string bomb = Gzip(std::string(50'000'000, '\0'));
  EXPECT_LT(bomb.size(), 100'000u);
  EXPECT_EQ(GunzipAll(bomb, 1000).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(GunzipTest, DamageIsReported) {
  const std::string good = Gzip("some text that is long enough to be cut");
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_EQ(GunzipAll(good.substr(0, length), 1000).status().code(), absl::StatusCode::kDataLoss)
        << length;
  }
  std::string damaged = good;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(GunzipAll(damaged, 1000).status().message(), HasSubstr("damaged"));
  EXPECT_THAT(GunzipAll("plain text", 1000).status().message(), HasSubstr("damaged"));
  EXPECT_FALSE(GunzipAll(good + "rest", 1000).ok());
}

}  // namespace
}  // namespace muster::data
