#include "base/text/shell_expand.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::base {
namespace {

using testing::HasSubstr;

std::string Variable(const std::string& name) {
  if (name == "HOME") return "/home/me";
  if (name == "A") return "a value";
  if (name == "B_2") return "$A ~";
  return "";
}

std::string Expand(absl::string_view text, Tildes tildes = Tildes::kFirst) {
  const auto expanded = ShellExpand(text, tildes, Variable);
  return expanded.ok() ? *expanded : "!" + std::string(expanded.status().message());
}

TEST(ShellExpandTest, ExpandsAsAShell) {
  EXPECT_EQ(Expand(""), "");
  EXPECT_EQ(Expand("runs/x"), "runs/x");
  EXPECT_EQ(Expand("~"), "/home/me");
  EXPECT_EQ(Expand("~/runs"), "/home/me/runs");
  EXPECT_EQ(Expand("~root/x"), "/root/x");
  EXPECT_EQ(Expand("a~b/~/c~"), "a~b/~/c~");
  EXPECT_EQ(Expand("$A"), "a value");
  EXPECT_EQ(Expand("/x/${A}y/$A/$B_2"), "/x/a valuey/a value/$A ~") << "a value is not expanded";
  EXPECT_EQ(Expand("gs://b/$A"), "gs://b/a value");
  EXPECT_EQ(Expand("a:~/b"), "a:~/b");
  EXPECT_EQ(Expand("~/a:~/b:~:c", Tildes::kEachColon), "/home/me/a:/home/me/b:/home/me:c");
}

TEST(ShellExpandTest, EscapesAndLiterals) {
  EXPECT_EQ(Expand(R"(\~/x \$A \\ \n a\b)"), R"(~/x $A \\ \n a\b)");
  EXPECT_EQ(Expand("costs 5$"), "costs 5$");
  EXPECT_EQ(Expand("$ $/ $. $%"), "$ $/ $. $%");
  EXPECT_EQ(Expand("{index} {A}"), "{index} {A}");
}

TEST(ShellExpandTest, RefusesTheRest) {
  EXPECT_THAT(Expand("x/$NONE/y"), HasSubstr("!uses $NONE, which is not set or empty"));
  EXPECT_THAT(Expand("${NONE}"), HasSubstr(R"(write \$ for a dollar sign)"));
  EXPECT_THAT(Expand("${A:-x}/y"), HasSubstr("!contains '${A:-x}'; only $NAME and ${NAME}"));
  EXPECT_THAT(Expand("${A"), HasSubstr("!contains '"));
  EXPECT_THAT(Expand("${}"), HasSubstr("!contains '${}'"));
  EXPECT_THAT(Expand("$(date)"), HasSubstr("!contains '$('"));
  EXPECT_THAT(Expand("pa$$word"), HasSubstr("!contains '$$'"));
  EXPECT_THAT(Expand("$1"), HasSubstr("!contains '$1'"));
  EXPECT_THAT(Expand("~no-such-user/x"), HasSubstr("no such user"));
  EXPECT_EQ(ShellExpand("~", Tildes::kFirst, nullptr).status().message(),
            "uses ~, and HOME is not set");
}

}  // namespace
}  // namespace muster::base
