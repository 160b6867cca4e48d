#include "cli/top/keys.h"

#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

KeyPress Character(const std::string& text) { return {Key::kCharacter, text}; }

TEST(KeyDecoderTest, DecodesSequencesOfSeveralTerminals) {
  KeyDecoder keys;
  EXPECT_THAT(keys.Feed("\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~"),
              ElementsAre(KeyPress{Key::kUp}, KeyPress{Key::kDown}, KeyPress{Key::kPageUp},
                          KeyPress{Key::kPageDown}, KeyPress{Key::kHome}, KeyPress{Key::kEnd}));
  EXPECT_THAT(keys.Feed("q\r\x7f\f\xc3\xa9"),
              ElementsAre(Character("q"), KeyPress{Key::kEnter}, KeyPress{Key::kBackspace},
                          KeyPress{Key::kRedraw}, Character("é")));
}

TEST(KeyDecoderTest, AKeyMayArriveInParts) {
  KeyDecoder keys;
  EXPECT_THAT(keys.Feed("\x1b"), IsEmpty());
  EXPECT_TRUE(keys.pending());
  EXPECT_THAT(keys.Feed("["), IsEmpty());
  EXPECT_THAT(keys.Feed("Bj"), ElementsAre(KeyPress{Key::kDown}, Character("j")));
  EXPECT_FALSE(keys.pending());
  EXPECT_THAT(keys.Feed("\xc3"), IsEmpty());
  EXPECT_THAT(keys.Feed("\xa9"), ElementsAre(Character("é")));
}

TEST(KeyDecoderTest, EscapeIsASequenceThatNothingFollows) {
  KeyDecoder keys;
  EXPECT_THAT(keys.Feed("\x1b"), IsEmpty());
  EXPECT_THAT(keys.Flush(), ElementsAre(KeyPress{Key::kEscape}));
  EXPECT_FALSE(keys.pending());
  EXPECT_THAT(keys.Feed("\x1bq"), ElementsAre(KeyPress{Key::kEscape}, Character("q")));
}

TEST(KeyDecoderTest, IgnoresUnknownSequencesAndInvalidBytes) {
  KeyDecoder keys;
  EXPECT_THAT(keys.Feed("\x1b[200~\x01\xff\x80x"), ElementsAre(Character("x")));
  EXPECT_THAT(keys.Feed("\x1b[1;5Ay"), ElementsAre(Character("y")));
}

}  // namespace
}  // namespace muster::cli
