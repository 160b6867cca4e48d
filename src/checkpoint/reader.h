// Reads one checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/bytes/dtype.h"
#include "checkpoint/manifest.h"
#include "checkpoint/mapped_file.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {

// Maps the files into memory. Spans stay valid as long as this object, also after it is moved.
// Removing or replacing the checkpoint meanwhile is safe. Immutable, hence thread-safe.
class Checkpoint {
 public:
  // With `verify`, checks every file against its checksum first. Returns Unavailable for a partial
  // folder, DataLoss for a damaged one, FailedPrecondition for a newer format.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder, bool verify = true);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  int64_t step() const { return manifest_.step; }
  bool final() const { return manifest_.final; }
  const std::string& model_name() const { return manifest_.model_name; }
  const nlohmann::json& state() const { return state_; }

  // In the order of the files: that of the writer, grouped by element size.
  const std::vector<base::TensorSpec>& weights() const { return weights_.specs; }
  const std::vector<base::TensorSpec>& slots() const { return slots_.specs; }
  // Return NotFound for an unknown name.
  absl::StatusOr<absl::Span<const std::byte>> Weight(absl::string_view name) const;
  absl::StatusOr<absl::Span<const std::byte>> Slot(absl::string_view name) const;
  // Return the name of the file that holds the tensor; "" for an unknown name.
  std::string WeightFile(absl::string_view name) const;
  std::string SlotFile(absl::string_view name) const;

 private:
  struct Stored {
    absl::Span<const std::byte> bytes;
    std::string file;
  };
  struct Tensors {
    std::vector<base::TensorSpec> specs;
    std::map<std::string, Stored, std::less<>> stored;
  };

  Checkpoint() = default;
  absl::Status MapShards(absl::string_view kind, Tensors& tensors);
  absl::Status MapShard(const std::string& name, Tensors& tensors);
  absl::Status CheckIndex() const;

  std::string folder_;
  Manifest manifest_;
  nlohmann::json state_;
  std::vector<MappedFile> files_;
  Tensors weights_;
  Tensors slots_;
};

}  // namespace muster::checkpoint
