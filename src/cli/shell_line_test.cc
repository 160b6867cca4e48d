#include "cli/shell_line.h"

#include "gtest/gtest.h"

namespace muster::cli {
namespace {

TEST(ShellLineTest, TheFirstWordIsTheProgram) {
  EXPECT_EQ(ProgramOfShellLine("python3 train.py --x=1"), "python3");
  EXPECT_EQ(ProgramOfShellLine("  ./train.sh; echo done"), "./train.sh");
  EXPECT_EQ(ProgramOfShellLine("sleep 5\necho x"), "sleep");
  EXPECT_EQ(ProgramOfShellLine("A=1 LD_LIBRARY_PATH=/x:/y python3 a.py"), "python3");
}

TEST(ShellLineTest, BuiltinsAreNoPrograms) {
  for (const char* line : {"echo hi", "cd x && ./y", "exec sleep 1", "test -e x", "[ -e x ]",
                           "if true; then x; fi", "for i in 1 2; do x; done", "while x; do y; done",
                           "{ x; }", "(x)", "export A=1", "set -e", "true", "false", ". ./x"}) {
    EXPECT_EQ(ProgramOfShellLine(line), "") << line;
  }
}

TEST(ShellLineTest, WhatOnlyTheShellKnowsIsNotGuessed) {
  for (const char* line : {"", "A=1", "$PYTHON x", "'my program' x", "A='x y' z", "PATH=/x y",
                           "~/x", "f() { x; }; f", "f () { x; }; f", "maybe || true", "# remark"}) {
    EXPECT_EQ(ProgramOfShellLine(line), "") << line;
  }
}

}  // namespace
}  // namespace muster::cli
