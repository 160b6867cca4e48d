#include "cli/job/diff.h"

#include <dtl/dtl.hpp>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::cli {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

Style StyleOf(absl::string_view line) {
  if (absl::StartsWith(line, "@@")) return Style::kCyan;
  if (absl::StartsWith(line, "+")) return Style::kGreen;
  if (absl::StartsWith(line, "-")) return Style::kRed;
  return Style::kPlain;
}

}  // namespace

std::string UnifiedDiff(const Terminal& terminal, const std::string& before,
                        const std::string& after) {
  dtl::Diff<std::string> diff(Lines(before), Lines(after));
  diff.compose();
  diff.composeUnifiedHunks();
  std::ostringstream plain;
  diff.printUnifiedFormat(plain);
  std::string text;
  for (const std::string& line : Lines(plain.str())) {
    absl::StrAppend(&text, terminal.Paint(StyleOf(line), line), "\n");
  }
  return text;
}

}  // namespace muster::cli
