#include "base/text/suggest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster::base {
namespace {

// Optimal string alignment distance, with the last three rows of the matrix.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

}  // namespace

std::string NearestWord(absl::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kMaxWordBytes = 64;
  if (word.empty() || word.size() > kMaxWordBytes) return "";
  const std::string lower = absl::AsciiStrToLower(word);
  // Allows one edit per three letters, and at least one: "ps" finds "p", "epochs" does not find
  // "steps".
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestWord(word, candidates);
  return nearest.empty() ? "" : absl::StrCat(" (did you mean '", nearest, "'?)");
}

}  // namespace muster::base
