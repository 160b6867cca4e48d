// Checks the files of a checkpoint against the checksums in its manifest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "checkpoint/manifest.h"

namespace muster::checkpoint {

// Returns DataLoss, naming the file, if it is absent, or its size or checksum differs. Calls `read`
// with the number of bytes after each block.
absl::Status VerifyFile(const std::string& folder, const ManifestFile& file,
                        absl::FunctionRef<void(int64_t)> read);

// Verifies all files. Returns one status per damaged file.
std::vector<absl::Status> VerifyFiles(const std::string& folder, const Manifest& manifest,
                                      absl::FunctionRef<void(int64_t)> read);

}  // namespace muster::checkpoint
