// Numbers text labels. All splits of a data set use the same numbers, even if converted later.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/convert/convert.h"

namespace muster::data {

// A file in the folder of a converted data set: one class per line, numbered from 0.
inline constexpr char kClassesFile[] = "classes.txt";

// Returns the classes of a folder; none if it has no kClassesFile. Returns DataLoss if a name is
// empty or repeated.
absl::StatusOr<std::vector<std::string>> ReadClasses(const std::string& folder);
absl::Status WriteClasses(const std::string& folder, const std::vector<std::string>& classes);

struct Numbering {
  std::vector<std::string> classes;  // empty if labels are numbers
  std::vector<std::string> added;    // those not in `existing`
};

// Numbers the labels of all sources consistently. `existing` classes keep their numbers; new ones
// follow, sorted. Returns InvalidArgument for new classes unless `add`, and, if there are no
// existing ones, for splits with different classes.
absl::StatusOr<Numbering> NumberClasses(const std::vector<SplitSource>& sources,
                                        const std::vector<std::string>& existing, bool add);

}  // namespace muster::data
