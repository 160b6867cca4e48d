// manifest.json, which makes a folder a checkpoint; see docs/formats/checkpoint.md.
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
  std::string sha256;  // 64 lower-case hexadecimal digits
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

// Returns DataLoss if the text is not a manifest, FailedPrecondition if its version is newer.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

// Returns Unavailable if the folder has no manifest and thus is partial; DataLoss also if the
// folder is named after another step.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// Returns DataLoss, naming the first file that is absent, not a regular file, or of another size.
absl::Status CheckSizes(const std::string& folder, const Manifest& manifest);

}  // namespace muster::checkpoint
