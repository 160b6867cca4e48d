// Several job files that are one job.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::cli {

// One file with what is in all of them: maps are joined, and of anything else that several of them
// say the last wins. A single text stays as it is. InvalidArgument names the file with the mistake.
struct ConfigFile {
  std::string name;
  std::string text;
};
absl::StatusOr<std::string> MergeConfigs(const std::vector<ConfigFile>& files);

}  // namespace muster::cli
