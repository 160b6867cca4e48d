// Merges several job files into one job.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::jobs {

struct ConfigFile {
  std::string path;  // "-" = standard input
  std::string text;

  std::string name() const { return path == "-" ? "standard input" : path; }
};

// Returns one YAML document. Maps are merged recursively; any other value of a later file replaces
// the earlier one. A single file is returned unchanged and unparsed. Returns InvalidArgument,
// naming the file, if one of several files is not valid YAML or not a single map.
absl::StatusOr<std::string> MergeConfigs(const std::vector<ConfigFile>& files);

}  // namespace muster::jobs
