#include "base/bytes/digest.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

// The examples of FIPS 180-2 and RFC 1321.
TEST(DigestTest, KnownAnswers) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Fingerprint("abc"), 0xba7816bf8f01cfea);
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
}

TEST(DigestTest, UpdatesInPieces) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  EXPECT_EQ(hash.Finish(), Sha256Hex("abc"));
}

}  // namespace
}  // namespace muster::base
