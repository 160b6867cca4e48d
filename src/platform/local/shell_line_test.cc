#include "platform/local/shell_line.h"

#include "gtest/gtest.h"

namespace muster::local {
namespace {

std::string Program(absl::string_view line) {
  const ShellCommand command = FirstCommand(line);
  return command.words.empty() ? "" : command.words[0];
}

TEST(ShellLineTest, TheFirstWordIsTheProgram) {
  EXPECT_EQ(Program("python3 train.py --x=1"), "python3");
  EXPECT_EQ(Program("  ./train.sh; echo done"), "./train.sh");
  EXPECT_EQ(Program("sleep 5\necho x"), "sleep");
  EXPECT_EQ(Program("A=1 LD_LIBRARY_PATH=/x:/y python3 a.py"), "python3");
  EXPECT_EQ(Program("exec sleep 1"), "sleep");
}

TEST(ShellLineTest, ReturnsLeadingPlainArguments) {
  const auto words = [](absl::string_view line) { return FirstCommand(line).words; };
  EXPECT_EQ(words("exec python3 -u train.py > log 2>&1"),
            (std::vector<std::string>{"python3", "-u", "train.py"}));
  EXPECT_EQ(words("sh a.sh; sh b.sh"), (std::vector<std::string>{"sh", "a.sh"}));
  EXPECT_EQ(words("sh a.sh\nsh b.sh"), (std::vector<std::string>{"sh", "a.sh"}));
  EXPECT_EQ(words("sh $SCRIPT x"), (std::vector<std::string>{"sh"}));
}

TEST(ShellLineTest, ALineFailsWithItsFirstCommandUnlessSomethingElseFollows) {
  for (const char* line : {"a", "a && b", "a > log 2>&1", "a &> log", " a\n"}) {
    EXPECT_TRUE(FirstCommand(line).decides) << line;
  }
  for (const char* line : {"a; b", "a | b", "a & b", "a &", "a\nb", "a || b"}) {
    EXPECT_FALSE(FirstCommand(line).decides) << line;
  }
}

TEST(ShellLineTest, BuiltinsAreNotPrograms) {
  for (const char* line : {"echo hi", "cd x && ./y", "test -e x", "[ -e x ]", "if true; then x; fi",
                           "for i in 1 2; do x; done", "while x; do y; done", "{ x; }", "(x)",
                           "export A=1", "set -e", "true", "false", ". ./x"}) {
    EXPECT_EQ(Program(line), "") << line;
  }
}

TEST(ShellLineTest, DoesNotGuessShellExpansions) {
  for (const char* line : {"", "A=1", "$PYTHON x", "'my program' x", "A='x y' z", "PATH=/x y",
                           "~/x", "f() { x; }; f", "f () { x; }; f", "maybe || true", "# remark"}) {
    EXPECT_EQ(Program(line), "") << line;
  }
}

}  // namespace
}  // namespace muster::local
