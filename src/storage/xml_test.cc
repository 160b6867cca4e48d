#include "storage/xml.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::storage {
namespace {

TEST(XmlTest, ElementsAndText) {
  const auto root = ParseXml(
      "<?xml version=\"1.0\"?>\n<r xmlns=\"http://s3/\"><a>1 &lt; "
      "&#228;</a><n:b><c/></n:b><a>2</a></r>");
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(root->name, "r");
  EXPECT_EQ(root->Text("a"), "1 < ä");
  EXPECT_EQ(root->Text("z"), "");
  ASSERT_EQ(root->children.size(), 3u);
  EXPECT_EQ(root->children[1].name, "b");
  EXPECT_EQ(root->children[1].children[0].name, "c");
}

TEST(XmlTest, HostileTextIsRejected) {
  for (const char* text : {"", "x", "<a>", "<a></b>", "<a/><b/>", "{}",
                           "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\">]><a>&b;</a>",
                           "<!DOCTYPE a [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><a>&f;</a>"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseXml(text).status())) << text;
  }
  std::string deep, wide = "<a>";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&deep, "<a>");
  EXPECT_FALSE(ParseXml(deep).ok());
  for (int i = 0; i < 100001; ++i) absl::StrAppend(&wide, "<b/>");
  EXPECT_FALSE(ParseXml(absl::StrCat(wide, "</a>")).ok());
}

TEST(XmlTest, Escaping) {
  const std::string text = "a<b>&\"c'";
  EXPECT_EQ(ParseXml(absl::StrCat("<a>", XmlEscape(text), "</a>"))->text, text);
}

}  // namespace
}  // namespace muster::storage
