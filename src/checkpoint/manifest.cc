#include "checkpoint/manifest.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "checkpoint/disk.h"
#include "checkpoint/format.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {
namespace {

using Json = nlohmann::json;

bool IsDigest(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

absl::StatusOr<int64_t> Integer(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned() ||
      found->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::DataLossError(absl::StrCat("'", key, "' must be a whole number"));
  }
  return found->get<int64_t>();
}

absl::StatusOr<std::string> Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    return absl::DataLossError(absl::StrCat("'", key, "' must be text"));
  }
  return found->get<std::string>();
}

absl::StatusOr<ManifestFile> ReadEntry(const Json& json) {
  if (!json.is_object()) return absl::DataLossError("'files' must be a list of objects");
  ManifestFile file;
  MUSTER_ASSIGN_OR_RETURN(file.name, Text(json, "name"));
  if (!IsPlainFileName(file.name)) {
    return absl::DataLossError(absl::StrCat("'", file.name, "' is not a plain file name"));
  }
  MUSTER_ASSIGN_OR_RETURN(file.bytes, Integer(json, "bytes"));
  MUSTER_ASSIGN_OR_RETURN(file.sha256, Text(json, "sha256"));
  if (!IsDigest(file.sha256)) {
    return absl::DataLossError(absl::StrCat("the sha256 of ", file.name, " is malformed"));
  }
  return file;
}

absl::Status ReadFiles(const Json& json, Manifest& manifest) {
  const auto files = json.find("files");
  if (files == json.end() || !files->is_array()) {
    return absl::DataLossError("'files' must be a list");
  }
  std::set<std::string> names;
  int64_t total = 0;
  for (const Json& entry : *files) {
    MUSTER_ASSIGN_OR_RETURN(ManifestFile file, ReadEntry(entry));
    if (!names.insert(file.name).second) {
      return absl::DataLossError(absl::StrCat(file.name, " is listed twice"));
    }
    if (__builtin_add_overflow(total, file.bytes, &total)) {
      return absl::DataLossError(absl::StrCat(file.name, " cannot have ", file.bytes, " bytes"));
    }
    manifest.files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> FromJson(const Json& json) {
  MUSTER_ASSIGN_OR_RETURN(const std::string format, Text(json, "format"));
  if (format != kFormatName) return absl::DataLossError("is not a checkpoint manifest");
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, Integer(json, "version"));
  if (version > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("written by a newer muster (format ", version,
                                                      ", this one reads ", kFormatVersion, ")"));
  }
  Manifest manifest;
  MUSTER_ASSIGN_OR_RETURN(manifest.step, Integer(json, "step"));
  MUSTER_ASSIGN_OR_RETURN(manifest.model_name, Text(json, "model"));
  MUSTER_ASSIGN_OR_RETURN(const std::string written, Text(json, "written"));
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, written, &manifest.written, &error)) {
    return absl::DataLossError("'written' must be an RFC 3339 time");
  }
  const auto final = json.find("final");
  if (final == json.end() || !final->is_boolean()) {
    return absl::DataLossError("'final' must be true or false");
  }
  manifest.final = final->get<bool>();
  MUSTER_RETURN_IF_ERROR(ReadFiles(json, manifest));
  return manifest;
}

}  // namespace

int64_t Manifest::bytes() const {
  int64_t total = 0;
  for (const ManifestFile& file : files) total += file.bytes;
  return total;
}

std::string ToJson(const Manifest& manifest) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const ManifestFile& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  const nlohmann::ordered_json json = {
      {"format", kFormatName},
      {"version", kFormatVersion},
      {"step", manifest.step},
      {"model", manifest.model_name},
      {"written", absl::FormatTime(absl::RFC3339_full, manifest.written, absl::UTCTimeZone())},
      {"final", manifest.final},
      {"files", files}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const Json json, ParseJsonObject(text));
  return FromJson(json);
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const auto json = ReadJsonObject(folder, kManifestFile);
  if (absl::IsNotFound(json.status())) {
    return absl::UnavailableError(
        absl::StrCat(folder, ": has no ", kManifestFile, "; the checkpoint is incomplete"));
  }
  if (!json.ok()) return json.status();
  auto manifest = FromJson(*json);
  if (!manifest.ok())
    return base::Annotate(manifest.status(), base::JoinPath(folder, kManifestFile));
  const auto step = ParseStepFolder(std::filesystem::path(folder).filename().string());
  if (step.has_value() && *step != manifest->step) {
    return absl::DataLossError(
        absl::StrCat(folder, ": its manifest belongs to step ", manifest->step));
  }
  return manifest;
}

absl::Status CheckSizes(const std::string& folder, const Manifest& manifest) {
  for (const ManifestFile& expected : manifest.files) {
    const auto file = OpenRegular(folder, expected.name);
    if (!file.ok()) return absl::DataLossError(file.status().message());
    if (file->bytes != expected.bytes) {
      return absl::DataLossError(absl::StrCat(base::JoinPath(folder, expected.name), ": has ",
                                              file->bytes, " bytes instead of ", expected.bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::checkpoint
