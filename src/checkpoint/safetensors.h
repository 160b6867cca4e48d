// One file in the safetensors format: a table of tensors, then their bytes. Files are untrusted
// input: everything read from them is validated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/bytes/dtype.h"
#include "storage/file_system.h"

namespace muster::checkpoint {

using Metadata = std::map<std::string, std::string>;

// Returns the "__metadata__" that PyTorch's tools write and expect.
Metadata TorchMetadata();

struct Placed {
  base::TensorSpec spec;
  int64_t begin = 0;  // offset of its bytes from data_start
};

struct SafetensorsHeader {
  std::vector<Placed> tensors;  // ordered by offset, without gaps
  Metadata metadata;
  int64_t data_start = 0;  // offset in the file
};

// Returns the size of a tensor in bytes, or nullopt if a dimension is negative or the product
// exceeds 63 bits.
std::optional<int64_t> CheckedBytes(const base::TensorSpec& spec);

// Parses the header of a file of `file_bytes` bytes. `beginning` contains at least the header.
// Returns DataLoss unless all lengths, offsets, shapes, types, names and text are valid.
absl::StatusOr<SafetensorsHeader> ParseHeader(absl::string_view beginning, int64_t file_bytes);

// Reads the header of a local file.
absl::StatusOr<SafetensorsHeader> ReadHeader(const std::string& path);

// Returns everything that precedes the bytes of `specs`, which must follow in this order. Returns
// InvalidArgument for names that are duplicate or not UTF-8, and for impossible shapes.
absl::StatusOr<std::string> WriteHeader(absl::Span<const base::TensorSpec> specs,
                                        const Metadata& metadata);

// Writes a file to `location`, a path or a URL, atomically; `bytes[i]` belongs to `specs[i]`.
// Orders tensors by descending element size, so that each is aligned to its elements.
absl::Status WriteSafetensors(const std::string& location,
                              const std::vector<base::TensorSpec>& specs,
                              const std::vector<absl::Span<const std::byte>>& bytes,
                              const Metadata& metadata,
                              storage::IfExists if_exists = storage::IfExists::kReplace);

}  // namespace muster::checkpoint
