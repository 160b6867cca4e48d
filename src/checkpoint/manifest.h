// manifest.json: what makes a folder a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::checkpoint {

struct ManifestFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits, lower case
};

struct Manifest {
  int64_t step = 0;
  std::string model_name;
  absl::Time written;
  bool final = false;
  std::vector<ManifestFile> files;  // each name once

  int64_t bytes() const;
};

std::string ToJson(const Manifest& manifest);

// DataLoss for what is no manifest; FailedPrecondition for one of a newer version.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

// Unavailable when the folder has none: it is partial. DataLoss also when the folder is named
// after another step.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// DataLoss names the first file that is absent, no regular file, or of another size.
absl::Status CheckSizes(const std::string& folder, const Manifest& manifest);

}  // namespace muster::checkpoint
