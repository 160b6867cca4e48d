#include "base/text/shell_expand.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/users.h"

namespace muster::base {
namespace {

constexpr char kLiteral[] = R"(; write \$ for a dollar sign)";

bool StartsName(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool ContinuesName(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Returns the length of the variable's name at the start of `text`.
size_t NameLength(absl::string_view text) {
  if (text.empty() || !StartsName(text.front())) return 0;
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), ContinuesName) -
                             text.begin());
}

absl::StatusOr<std::string> ValueOf(absl::string_view name, const Variables& variables) {
  std::string value = variables == nullptr ? "" : variables(std::string(name));
  if (!value.empty()) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "uses $", name, ", which is not set or empty where muster was called", kLiteral));
}

// Removes a variable, which begins with $, from the start of *text and returns its value.
absl::StatusOr<std::string> TakeVariable(absl::string_view* text, const Variables& variables) {
  absl::string_view rest = text->substr(1);
  const bool braces = !rest.empty() && rest.front() == '{';
  if (braces) rest.remove_prefix(1);
  const size_t length = NameLength(rest);
  const absl::string_view name = rest.substr(0, length);
  rest.remove_prefix(length);
  if (braces && (length == 0 || rest.empty() || rest.front() != '}')) {
    return absl::InvalidArgumentError(
        absl::StrCat("contains '", Printable(text->substr(0, text->find('}') + 1)),
                     "'; only $NAME and ${NAME} are expanded", kLiteral));
  }
  *text = rest.substr(braces ? 1 : 0);
  return ValueOf(name, variables);
}

// Removes ~ or ~user from the start of *text and returns the folder.
absl::StatusOr<std::string> TakeHome(absl::string_view* text, const Variables& variables) {
  const size_t end = std::min(text->find_first_of("/:"), text->size());
  const std::string user(text->substr(1, end - 1));
  text->remove_prefix(end);
  if (user.empty()) {
    std::string home = variables == nullptr ? "" : variables("HOME");
    if (home.empty()) return absl::InvalidArgumentError("uses ~, and HOME is not set");
    return home;
  }
  if (std::string home = HomeOfUser(user); !home.empty()) return home;
  return absl::InvalidArgumentError(absl::StrCat(
      "uses ~", Printable(user), ", and this machine has no such user; write \\~ ", "for a tilde"));
}

}  // namespace

absl::StatusOr<std::string> ShellExpand(absl::string_view text, Tildes tildes,
                                        const Variables& variables) {
  std::string result;
  bool at_start = true;  // a ~ here is a home folder
  while (!text.empty()) {
    const char c = text.front();
    const char next = text.size() > 1 ? text[1] : '\0';
    if (c == '\\' && (next == '$' || next == '~')) {
      result.push_back(next);
      text.remove_prefix(2);
    } else if (c == '~' && at_start) {
      MUSTER_ASSIGN_OR_RETURN(const std::string home, TakeHome(&text, variables));
      result += home;
    } else if (c == '$' && (StartsName(next) || next == '{')) {
      MUSTER_ASSIGN_OR_RETURN(const std::string value, TakeVariable(&text, variables));
      result += value;
    } else if (c == '$' && (absl::ascii_isdigit(next) ||
                            (next != '\0' && absl::StrContains("($?!#@*-", next)))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "contains '$", std::string(1, next), "'; only $NAME and ${NAME} are expanded", kLiteral));
    } else {
      result.push_back(c);
      text.remove_prefix(1);
    }
    at_start = c == ':' && tildes == Tildes::kEachColon;
  }
  return result;
}

}  // namespace muster::base
