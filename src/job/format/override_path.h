// Locates a value in a parsed document by its path, such as spec.containers[0].image.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "codec/node.h"

namespace muster::job {

// A step from a value to a part of it.
struct PathStep {
  std::string key;  // of a map
  size_t index = 0;
  bool is_index = false;  // `index` of a list, not `key`
};

// Parses keys separated by dots, each followed by any number of [INDEX]. A backslash before a
// character makes it part of a key: labels.example\.com/team. Returns InvalidArgument otherwise.
absl::StatusOr<std::vector<PathStep>> ParsePath(absl::string_view path);

// Returns the value at `path` for modification. Creates the parts of the path that are absent, at
// `mark`; index N of a list of N items appends one. Returns InvalidArgument if a part has another
// kind or an index is out of range. `root` is changed only if the path fits. REQUIRES: path is not
// empty.
absl::StatusOr<codec::Node*> FindOrCreate(const std::vector<PathStep>& path, codec::Mark mark,
                                          codec::Node& root);

// Returns the value of `key` in a map for modification, or null if there is none.
codec::Node* FindValue(codec::Node& map, absl::string_view key);
// Returns the value of `key`, created as null at `mark` if it is absent. REQUIRES: `map` is a map
// or null.
codec::Node& ValueOf(codec::Node& map, absl::string_view key, codec::Mark mark);

}  // namespace muster::job
