// What WebHDFS says, in JSON.
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

  std::string name;  // within its folder; "" of what was asked for by its own name
  Kind kind = Kind::kOther;
  int64_t bytes = 0;
  int64_t modified = 0;  // milliseconds since 1970
  int64_t id = 0;        // never given twice; 0 when the server does not tell

  // Whether it is still what it was, wherever it is.
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

// The answer to GETFILESTATUS. DataLoss when it is something else.
absl::StatusOr<HdfsStatus> ParseHdfsStatus(absl::string_view json);
// The answer to LISTSTATUS or LISTSTATUS_BATCH. DataLoss when it is something else.
absl::StatusOr<HdfsPage> ParseHdfsPage(absl::string_view json);
// The answer to what went wrong; nullopt when it is something else.
std::optional<HdfsException> ParseHdfsException(absl::string_view json);
// {"boolean": …}; nullopt when it is something else.
std::optional<bool> ParseHdfsBoolean(absl::string_view json);

}  // namespace muster::storage
