// What Google Cloud Storage tells of an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "storage/file_system.h"

namespace muster::storage {

// Those of its members that ParseObject() reads, as a request asks for them.
inline constexpr char kObjectFields[] = "name,size,updated,md5Hash,crc32c,generation";

struct GsObject {
  FileInfo info;
  std::string generation;  // of two objects of a name another one
  std::optional<uint32_t> crc32c;
};

// DataLoss when it is none.
absl::StatusOr<GsObject> ParseObject(const Url& url, const nlohmann::json& json);

// A check sum as it stands there: the four bytes, highest first, in base 64.
std::string FormatCrc32c(uint32_t crc);

}  // namespace muster::storage
