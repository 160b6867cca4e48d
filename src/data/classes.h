// The numbers of text labels: the same in all splits of a data set, whenever they were converted.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/convert.h"

namespace muster::data {

// In the folder of a converted data set: one class a line, numbered from 0.
inline constexpr char kClassesFile[] = "classes.txt";

// The classes of a folder; none when it has no such file. DataLoss for a file that is no list of
// different names.
absl::StatusOr<std::vector<std::string>> ReadClasses(const std::string& folder);
absl::Status WriteClasses(const std::string& folder, const std::vector<std::string>& classes);

struct Numbering {
  std::vector<std::string> classes;  // empty when labels are numbers
  std::vector<std::string> added;    // those that `existing` did not have
};

// Numbers the labels of all sources alike. `existing` classes keep their numbers, and new ones
// follow them, sorted; InvalidArgument for new ones unless `add`. Without existing ones all splits
// must have the same classes.
absl::StatusOr<Numbering> NumberClasses(const std::vector<SplitSource>& sources,
                                        const std::vector<std::string>& existing, bool add);

}  // namespace muster::data
