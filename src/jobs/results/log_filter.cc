#include "jobs/results/log_filter.h"

#include <regex.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::jobs {
namespace {

// std::regex recurses once per character, which overflows the stack on a long line.
class Pattern {
 public:
  static absl::StatusOr<std::shared_ptr<const Pattern>> Compile(const std::string& text) {
    auto pattern = std::make_shared<Pattern>();
    const int error = ::regcomp(&pattern->regex_, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error == 0) {
      pattern->compiled_ = true;
      return pattern;
    }
    char why[200];
    ::regerror(error, &pattern->regex_, why, sizeof(why));
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern '", text, "': ", why, "; expected a regular expression, as for grep -E"));
  }
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    if (compiled_) ::regfree(&regex_);
  }

  bool Matches(const std::string& text) const {
    // Output may contain NUL, so the end is given.
    regmatch_t range{.rm_so = 0, .rm_eo = static_cast<regoff_t>(text.size())};
    return ::regexec(&regex_, text.c_str(), 1, &range, REG_STARTEND) == 0;
  }

 private:
  regex_t regex_{};
  bool compiled_ = false;
};

}  // namespace

absl::StatusOr<supervise::LogCondition> MakeLogCondition(const LogQuery& query) {
  if (query.attempt && *query.attempt < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("no attempt ", *query.attempt, ": attempts are counted from 1"));
  }
  std::shared_ptr<const Pattern> pattern;
  if (!query.pattern.empty()) {
    MUSTER_ASSIGN_OR_RETURN(pattern, Pattern::Compile(query.pattern));
  }
  return [pattern, attempt = query.attempt](const supervise::LogLine& line) {
    if (attempt && line.attempt + 1 != *attempt) return false;
    return pattern == nullptr || pattern->Matches(line.text);
  };
}

}  // namespace muster::jobs
