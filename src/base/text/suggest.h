// "Did you mean" suggestions.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

// Returns the candidate nearest to `word` by case-insensitive edit distance (a transposition counts
// as one edit), or "" if none is near enough.
std::string NearestWord(absl::string_view word, const std::vector<std::string>& candidates);

// Returns " (did you mean 'x'?)", or "" without a near candidate.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster::base
