// Holds a checkpoint's files to the hashes in its manifest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "checkpoint/manifest.h"

namespace muster::checkpoint {

// DataLoss, naming the file, for one that is absent, of another size or of another content.
absl::Status VerifyFile(const std::string& folder, const ManifestFile& file,
                        absl::FunctionRef<void(int64_t)> read);

// All files; one status for each that is damaged. `read` hears how many more bytes were read.
std::vector<absl::Status> VerifyFiles(const std::string& folder, const Manifest& manifest,
                                      absl::FunctionRef<void(int64_t)> read);

}  // namespace muster::checkpoint
