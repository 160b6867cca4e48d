// A memory-mapped file of a checkpoint.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/files/mapping.h"

namespace muster::checkpoint {

class MappedFile {
 public:
  // Returns DataLoss if the path is not a regular file, for example a link.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  absl::Span<const std::byte> bytes() const {
    const absl::string_view bytes = mapping_.bytes();
    return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  }

 private:
  explicit MappedFile(base::Mapping mapping) : mapping_(std::move(mapping)) {}
  base::Mapping mapping_;
};

}  // namespace muster::checkpoint
