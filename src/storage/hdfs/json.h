// The JSON responses of WebHDFS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

// A file or a folder.
struct HdfsStatus {
  enum class Kind { kFile, kFolder, kOther };

  std::string name;  // within its folder; "" in a response to GETFILESTATUS
  Kind kind = Kind::kOther;
  int64_t bytes = 0;
  int64_t modified = 0;  // milliseconds since the Unix epoch
  int64_t id = 0;        // never reused; 0 if the server does not report it

  // Returns whether this is the same, unchanged file, possibly renamed.
  bool IsSame(const HdfsStatus& other) const {
    return kind == other.kind && bytes == other.bytes && modified == other.modified &&
           id == other.id;
  }
};

struct HdfsPage {
  std::vector<HdfsStatus> entries;
  int64_t remaining = 0;
};

struct HdfsException {
  std::string name;     // of its class: "FileNotFoundException"
  std::string message;  // its first line
};

// Parses the response to GETFILESTATUS, or returns DataLoss.
absl::StatusOr<HdfsStatus> ParseHdfsStatus(absl::string_view json);
// Parses the response to LISTSTATUS or LISTSTATUS_BATCH, or returns DataLoss.
absl::StatusOr<HdfsPage> ParseHdfsPage(absl::string_view json);
// Parses the response to a failed request; nullopt if it is something else.
std::optional<HdfsException> ParseHdfsException(absl::string_view json);
// Parses {"boolean": …}; nullopt if it is something else.
std::optional<bool> ParseHdfsBoolean(absl::string_view json);

}  // namespace muster::storage
