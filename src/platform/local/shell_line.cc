#include "platform/local/shell_line.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::local {
namespace {

// Builtins and keywords.
constexpr absl::string_view kNoPrograms[] = {
    ".",      "alias",  "bg",     "break",   "case",   "cd",    "command",  "continue", "echo",
    "eval",   "exit",   "export", "false",   "fg",     "for",   "function", "getopts",  "hash",
    "if",     "jobs",   "kill",   "local",   "printf", "pwd",   "read",     "readonly", "return",
    "select", "set",    "shift",  "source",  "test",   "time",  "times",    "trap",     "true",
    "type",   "ulimit", "umask",  "unalias", "unset",  "until", "wait",     "while"};

// Returns whether the shell takes the word literally.
bool IsPlain(absl::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_./+-=:,@%").find(c) != absl::string_view::npos;
  });
}

// Returns whether the first command determines the failure of the line: only `&&` and redirections
// follow.
bool Decides(absl::string_view line) {
  if (line.find_first_of(";|\n") != absl::string_view::npos) return false;
  for (size_t i = line.find('&'); i != absl::string_view::npos; i = line.find('&', i + 1)) {
    const bool joins = line.substr(i, 2) == "&&";
    const bool redirects = (i > 0 && line[i - 1] == '>') || line.substr(i, 2) == "&>";
    if (!joins && !redirects) return false;
    if (joins) ++i;
  }
  return true;
}

}  // namespace

ShellCommand FirstCommand(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  // In `a || b`, `a` may be missing on purpose.
  if (absl::StrContains(line, "||")) return {};
  ShellCommand command{.decides = Decides(line)};
  line = line.substr(0, line.find('\n'));
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  for (size_t i = 0; i < words.size(); ++i) {
    const absl::string_view word = absl::StripSuffix(words[i], ";");
    const bool ends = word.size() < words[i].size();
    if (!IsPlain(word)) break;
    if (!command.words.empty()) {
      command.words.emplace_back(word);
      if (ends) break;
      continue;
    }
    if (absl::StartsWith(word, "PATH=")) break;
    if (absl::StrContains(word, '=') || word == "exec") continue;
    const bool defines_function = i + 1 < words.size() && absl::StartsWith(words[i + 1], "(");
    const bool builtin =
        std::find(std::begin(kNoPrograms), std::end(kNoPrograms), word) != std::end(kNoPrograms);
    if (builtin || defines_function) break;
    command.words.emplace_back(word);
    if (ends) break;
  }
  return command;
}

}  // namespace muster::local
