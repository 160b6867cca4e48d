// Merges several job files into one job.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::cli {

struct ConfigFile {
  std::string name;  // for messages
  std::string text;
};

// Returns one YAML document. Maps are merged recursively; any other value of a later file replaces
// the earlier one. A single file is returned unchanged and unparsed. Returns InvalidArgument,
// naming the file, if one of several files is not valid YAML or not a single map.
absl::StatusOr<std::string> MergeConfigs(const std::vector<ConfigFile>& files);

}  // namespace muster::cli
