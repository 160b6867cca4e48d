// One file in the safetensors format: a table of tensors, then their bytes. Files may come from
// anybody: nothing in them is believed before it is checked.
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
#include "base/dtype.h"
#include "storage/file_system.h"

namespace muster::checkpoint {

using Metadata = std::map<std::string, std::string>;

// What "__metadata__" says in the files that PyTorch's tools write and expect.
Metadata TorchMetadata();

struct Placed {
  TensorSpec spec;
  int64_t begin = 0;  // of its bytes, counted from data_start
};

struct SafetensorsHeader {
  std::vector<Placed> tensors;  // in the order of their bytes, which leave no holes
  Metadata metadata;
  int64_t data_start = 0;  // in the file
};

// The bytes that a tensor takes; nullopt when the shape is negative somewhere or the product does
// not fit 63 bits.
std::optional<int64_t> CheckedBytes(const TensorSpec& spec);

// Reads the header of a file of `file_bytes` of which `beginning` holds at least the header.
// DataLoss for what is no such file: lengths, offsets, shapes, types, names and text are checked.
absl::StatusOr<SafetensorsHeader> ParseHeader(absl::string_view beginning, int64_t file_bytes);

// The same from a file.
absl::StatusOr<SafetensorsHeader> ReadHeader(const std::string& path);

// All that stands before the bytes of `specs`, which follow in this order. InvalidArgument for
// names that are double or not UTF-8, and for impossible shapes.
absl::StatusOr<std::string> WriteHeader(absl::Span<const TensorSpec> specs,
                                        const Metadata& metadata);

// Writes a file at a path or a URL: `bytes[i]` are those of `specs[i]`. It is there whole, or not
// at all. Tensors are placed by falling element size, so that each is aligned to its own.
absl::Status WriteSafetensors(const std::string& place, const std::vector<TensorSpec>& specs,
                              const std::vector<absl::Span<const std::byte>>& bytes,
                              const Metadata& metadata,
                              storage::IfExists if_exists = storage::IfExists::kReplace);

}  // namespace muster::checkpoint
