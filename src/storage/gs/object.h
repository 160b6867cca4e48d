// The metadata of an object of Google Cloud Storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"
#include "storage/file_system.h"

namespace muster::storage {

// The members that ParseObject() reads, for the `fields` parameter of a request.
inline constexpr char kObjectFields[] = "name,size,updated,md5Hash,crc32c,generation";

struct GsObject {
  FileInfo info;
  std::string generation;  // changes whenever the object is replaced
  std::optional<uint32_t> crc32c;
};

// Returns DataLoss if the JSON is not an object's metadata.
absl::StatusOr<GsObject> ParseObject(const Url& url, const nlohmann::json& json);

// Returns a checksum as the API encodes it: four bytes, big-endian, in base64.
std::string FormatCrc32c(uint32_t crc);

}  // namespace muster::storage
