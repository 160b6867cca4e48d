#include "base/text/suggest.h"

#include "gtest/gtest.h"

namespace muster::base {
namespace {

TEST(SuggestTest, FindsTheNearestWord) {
  const std::vector<std::string> words = {"roles", "replicas", "command", "ps"};
  EXPECT_EQ(NearestWord("replica", words), "replicas");
  EXPECT_EQ(NearestWord("comamnd", words), "command");
  EXPECT_EQ(NearestWord("Roles", words), "roles");
  EXPECT_EQ(NearestWord("p", words), "ps");
}

TEST(SuggestTest, IsEmptyWithoutANearCandidate) {
  EXPECT_EQ(NearestWord("banana", {"roles", "ps"}), "");
  EXPECT_EQ(NearestWord("", {"roles"}), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'a'), {std::string(100000, 'a')}), "");
  EXPECT_EQ(DidYouMean("banana", {"ps"}), "");
  EXPECT_EQ(DidYouMean("rols", {"roles"}), " (did you mean 'roles'?)");
}

}  // namespace
}  // namespace muster::base
