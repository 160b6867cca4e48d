// Normalization of features: (value - mean) / deviation. All splits of a data set use the same
// scales, also if converted later.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/convert/convert.h"

namespace muster::data {

// A file in the folder of a normalized data set, with a line per feature: column,mean,deviation.
inline constexpr char kNormalizationFile[] = "normalization.csv";

// Returns the scales of a folder; none if it has no kNormalizationFile. Returns DataLoss if the
// file is malformed.
absl::StatusOr<std::vector<FeatureScale>> ReadNormalization(const std::string& folder);
absl::Status WriteNormalization(const std::string& folder, const std::vector<FeatureScale>& scales);

// Normalizes all sources by `existing` scales or, if there are none, by those of the first source.
// Returns the scales. Returns InvalidArgument if a source has other features or cannot be
// normalized.
absl::StatusOr<std::vector<FeatureScale>> Normalize(const std::vector<SplitSource>& sources,
                                                    const std::vector<FeatureScale>& existing);

}  // namespace muster::data
