// "Did you mean": the nearest valid word.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// The candidate nearest to `word` by edit distance (a transposition counts once, case not at all),
// or "" when none is near enough to be worth naming.
std::string NearestWord(absl::string_view word, const std::vector<std::string>& candidates);

// " (did you mean 'x'?)" or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster
