#include "cli/terminal/terminal.h"

#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "cli/terminal/terminal_testing.h"
#include "gmock/gmock.h"

namespace muster::cli {
namespace {

using testing::HasSubstr;

TEST(TerminalTest, AFileGetsNoColour) {
  FileOutput file;
  EXPECT_FALSE(file.terminal().is_terminal());
  EXPECT_EQ(file.terminal().width(), 80);
  EXPECT_EQ(file.terminal().Paint(Style::kRed, "x"), "x");
  file.terminal().Note("hello");
  file.terminal().Error("bad");
  EXPECT_EQ(file.Text(), "muster: hello\nmuster: error: bad\n");
}

TEST(TerminalTest, ATerminalGetsColourUnlessDisabled) {
  const ScopedVariable term("TERM", "xterm");
  const ScopedVariable wanted("NO_COLOR", nullptr);
  Screen screen(100);
  EXPECT_TRUE(screen.terminal().is_terminal());
  EXPECT_EQ(screen.terminal().width(), 100);
  EXPECT_EQ(screen.terminal().Paint(Style::kRed, "x"), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(screen.terminal().Paint(Style::kPlain, "x"), "x");
  {
    const ScopedVariable unwanted("NO_COLOR", "1");
    EXPECT_EQ(Screen(80).terminal().Paint(Style::kRed, "x"), "x");
  }
  {
    const ScopedVariable dumb("TERM", "dumb");
    EXPECT_EQ(Screen(80).terminal().Paint(Style::kRed, "x"), "x");
  }
  const ScopedVariable empty("NO_COLOR", "");
  EXPECT_NE(Screen(80).terminal().Paint(Style::kRed, "x"), "x");
}

TEST(TerminalTest, DetectsAClosedPipe) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  ::close(fds[0]);
  ::signal(SIGPIPE, SIG_IGN);
  FILE* stream = ::fdopen(fds[1], "w");
  std::setvbuf(stream, nullptr, _IONBF, 0);
  Terminal terminal(stream);
  EXPECT_TRUE(terminal.ok());
  terminal.PrintLine("anybody?");
  EXPECT_FALSE(terminal.ok());
  std::fclose(stream);
  ::signal(SIGPIPE, SIG_DFL);
}

TEST(TerminalTest, DetectsAFullDisk) {
  FILE* full = std::fopen("/dev/full", "w");
  Terminal terminal(full);
  terminal.PrintLine("lost");
  EXPECT_TRUE(terminal.ok());  // still buffered
  terminal.Flush();
  EXPECT_EQ(terminal.error(), ENOSPC);
  std::fclose(full);
}

TEST(TerminalTest, AStatusStaysBelowAllOutput) {
  const ScopedVariable term("TERM", "xterm");
  const ScopedVariable plain("NO_COLOR", "1");
  Screen screen(100);
  Terminal& terminal = screen.terminal();
  terminal.SetStatus("10%");
  terminal.SetStatus("10%");  // unchanged: not redrawn
  terminal.SetStatus("20%");
  EXPECT_EQ(screen.Text(), "\r10%\x1b[K\r20%\x1b[K");
  terminal.Note("hello");
  terminal.Note("again");
  terminal.SetStatus("20%");
  terminal.SetStatus("");
  EXPECT_EQ(screen.Text(), "\r\x1b[Kmuster: hello\nmuster: again\n\r20%\x1b[K\r\x1b[K");
}

TEST(TerminalTest, OutputOnTheSameScreenClearsTheStatus) {
  const ScopedVariable term("TERM", "xterm");
  Screen err(100);
  FileOutput out;
  out.terminal().SharesScreenWith(err.terminal());
  err.terminal().SetStatus("10%");
  out.terminal().PrintLine("a");
  out.terminal().PrintLine("b");
  EXPECT_EQ(err.Text(), "\r10%\x1b[K\r\x1b[K");
}

TEST(TerminalTest, OnlyATerminalThatCanRedrawHasAStatus) {
  FileOutput file;
  file.terminal().SetStatus("10%");
  EXPECT_EQ(file.Text(), "");
  const ScopedVariable dumb("TERM", "dumb");
  Screen screen(100);
  screen.terminal().SetStatus("10%");
  EXPECT_EQ(screen.Text(), "");
}

TEST(TerminalTest, TheLocaleDeterminesUtf8) {
  const ScopedVariable all("LC_ALL", "");
  const ScopedVariable ctype("LC_CTYPE", nullptr);
  const ScopedVariable lang("LANG", "de_DE.utf8");
  EXPECT_TRUE(Screen(80).terminal().unicode());
  EXPECT_FALSE(FileOutput().terminal().unicode());
  {
    const ScopedVariable posix("LC_ALL", "POSIX");
    EXPECT_FALSE(Screen(80).terminal().unicode());
  }
  const ScopedVariable none("LANG", nullptr);
  EXPECT_FALSE(Screen(80).terminal().unicode());
}

constexpr char kHostile[] = "a\x1b]0;title\x07\x1b[2J\x1b[8mb\u009B1A\u202Ec\rd\n";

TEST(TerminalTest, MessagesCannotSendControlCharacters) {
  const ScopedVariable term("TERM", "xterm");
  const ScopedVariable wanted("NO_COLOR", nullptr);
  constexpr char kHarmless[] = "a^[]0;title^G^[[2J^[[8mb\uFFFD1A\uFFFDc^Md\n";
  Screen screen(100);
  screen.terminal().Print(screen.terminal().Paint(Style::kRed, "x") + kHostile);
  EXPECT_EQ(screen.Text(), absl::StrCat("\x1b[31mx\x1b[0m", kHarmless));
  screen.terminal().SetStatus(kHostile);
  EXPECT_THAT(screen.Text(), HasSubstr("\ra^[]0;title^G^[[2J^[[8mb"));
  FileOutput file;
  file.terminal().Print("\x1b[31mred\x1b[0m ");
  file.terminal().Print(kHostile);
  EXPECT_EQ(file.Text(), absl::StrCat("^[[31mred^[[0m ", kHarmless));
}

TEST(TerminalTest, DataIsUnchangedInAFileAndPrintableOnATerminal) {
  FileOutput file;
  file.terminal().PrintData(kHostile);
  EXPECT_EQ(file.Text(), kHostile);
  Screen screen(100);
  screen.terminal().PrintData(kHostile);
  EXPECT_EQ(screen.Text(), "a^[]0;title^G^[[2J\x1b[8mb\uFFFD1A\uFFFDc^Md\x1b[0m\n");
}

TEST(TableTest, ACellIsOneLineWithoutControlCharacters) {
  FileOutput file;
  Table table({"A", "B"});
  table.Add({"x\ny\x1b[2J", "z"});
  EXPECT_EQ(table.Render(file.terminal()), "A          B\nx^Jy^[[2J  z\n");
}

TEST(TableTest, ALongNameLeavesRoomForTheOtherColumns) {
  const ScopedVariable plain("NO_COLOR", "1");
  Screen screen(60);
  Table table({"JOB", "STATE", "NOTE"}, 2);
  table.Add({absl::StrCat(std::string(63, 'n'), "-x7k2q"), "Running", "bad news of worker:1"});
  const std::string text = table.Render(screen.terminal());
  EXPECT_THAT(text, HasSubstr("…"));
  EXPECT_THAT(text, HasSubstr("-x7k2q  Running  bad news …\n"));
  FileOutput file;
  EXPECT_THAT(table.Render(file.terminal()), HasSubstr(std::string(63, 'n')));
}

TEST(TableTest, ColumnsAreAsWideAsTheirContent) {
  FileOutput file;
  Table table({"TASK", "STATE", "NOTE"}, 2);
  table.Add({"worker:10", "Running", ""});
  table.Add({"ps:0", "Failed", std::string(200, 'x')});
  EXPECT_EQ(table.Render(file.terminal()),
            "TASK       STATE    NOTE\n"
            "worker:10  Running\n"
            "ps:0       Failed   " +
                std::string(200, 'x') + "\n");
}

TEST(TableTest, WideAndColouredCellsStayAligned) {
  FileOutput file;
  Table table({"A", "B"});
  table.Add({"日本", "x"});
  table.Add({"\x1b[31mred\x1b[0m", "y"});
  EXPECT_EQ(table.Render(file.terminal()), "A     B\n日本  x\n\x1b[31mred\x1b[0m   y\n");
}

TEST(TableTest, OneColumnShrinksOnATerminal) {
  const ScopedVariable plain("NO_COLOR", "1");
  Screen screen(30);
  Table table({"TASK", "NOTE"}, 1);
  table.Add({"worker:0", std::string(100, 'x')});
  const std::string text = table.Render(screen.terminal());
  EXPECT_EQ(text, "TASK      NOTE\nworker:0  " + std::string(19, 'x') + "…\n");
  Screen narrow(5);
  EXPECT_EQ(table.Render(narrow.terminal()), "TASK…\nwork…\n");
}

TEST(TableTest, ColumnsAreOmittedOnANarrowTerminal) {
  const ScopedVariable plain("NO_COLOR", "1");
  Table table({"TASK", "HOST", "PID", "NOTE"}, 3, {1, 2});
  table.Add({"worker:0", "a-host", "1234", "bad"});
  EXPECT_EQ(table.Render(Screen(28).terminal()),
            "TASK      HOST    PID   NOTE\nworker:0  a-host  1234  bad\n");
  EXPECT_EQ(table.Render(Screen(27).terminal()), "TASK      PID   NOTE\nworker:0  1234  bad\n");
  EXPECT_EQ(table.Render(Screen(15).terminal()), "TASK      NOTE\nworker:0  bad\n");
}

TEST(TableTest, ATruncatedLineResetsItsColour) {
  Screen screen(6);
  Table table({"A", "B"}, 1);
  table.Add({"\x1b[31mfailed badly\x1b[0m", "x"});
  EXPECT_THAT(table.Render(screen.terminal()), HasSubstr("faile…\x1b[0m\n"));
}

TEST(TableTest, AnEmptyTableIsItsHeader) {
  FileOutput file;
  EXPECT_EQ(Table({"A", "B"}).Render(file.terminal()), "A  B\n");
}

}  // namespace
}  // namespace muster::cli
