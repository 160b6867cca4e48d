#include "cli/shell_line.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::cli {
namespace {

constexpr absl::string_view kNoPrograms[] = {
    ".",      "alias",  "bg",     "break",  "case",    "cd",     "command", "continue", "echo",
    "eval",   "exec",   "exit",   "export", "false",   "fg",     "for",     "function", "getopts",
    "hash",   "if",     "jobs",   "kill",   "local",   "printf", "pwd",     "read",     "readonly",
    "return", "select", "set",    "shift",  "source",  "test",   "time",    "times",    "trap",
    "true",   "type",   "ulimit", "umask",  "unalias", "unset",  "until",   "wait",     "while"};

// Nothing in it means anything to the shell.
bool IsPlain(absl::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_./+-=:,@%").find(c) != absl::string_view::npos;
  });
}

}  // namespace

std::string ProgramOfShellLine(absl::string_view line) {
  // In `a || b` a program that is missing may be meant to be.
  if (absl::StrContains(line, "||")) return "";
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  for (size_t i = 0; i < words.size(); ++i) {
    const absl::string_view word = absl::StripSuffix(words[i], ";");
    if (!IsPlain(word) || absl::StartsWith(word, "PATH=")) return "";
    if (absl::StrContains(word, '=')) continue;
    const bool defines_function = i + 1 < words.size() && absl::StartsWith(words[i + 1], "(");
    const bool builtin =
        std::find(std::begin(kNoPrograms), std::end(kNoPrograms), word) != std::end(kNoPrograms);
    return builtin || defines_function ? "" : std::string(word);
  }
  return "";
}

}  // namespace muster::cli
