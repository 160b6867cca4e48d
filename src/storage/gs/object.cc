#include "storage/gs/object.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "storage/objects.h"

namespace muster::storage {
namespace {

std::optional<uint32_t> ParseCrc32c(absl::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes) || bytes.size() != 4) return std::nullopt;
  uint32_t crc = 0;
  for (const char byte : bytes) crc = crc << 8 | static_cast<uint8_t>(byte);
  return crc;
}

std::string ParseMd5(absl::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes) || bytes.size() != 16) return "";
  return absl::BytesToHexString(bytes);
}

}  // namespace

std::string FormatCrc32c(uint32_t crc) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(crc >> shift));
  return absl::Base64Escape(bytes);
}

absl::StatusOr<GsObject> ParseObject(const Url& url, const nlohmann::json& json) {
  GsObject object{.info = {.url = url}, .generation = base::TextMember(json, "generation")};
  MUSTER_ASSIGN_OR_RETURN(object.info.bytes, ParseSize(url, base::TextMember(json, "size")));
  if (object.generation.empty()) {
    return absl::DataLossError(absl::StrCat(url.ToString(), ": the server reports no generation"));
  }
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, base::TextMember(json, "updated"), &object.info.modified,
                       &error)) {
    object.info.modified = absl::InfinitePast();
  }
  object.info.md5 = ParseMd5(base::TextMember(json, "md5Hash"));
  object.crc32c = ParseCrc32c(base::TextMember(json, "crc32c"));
  return object;
}

}  // namespace muster::storage
