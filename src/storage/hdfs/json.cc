#include "storage/hdfs/json.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"

namespace muster::storage {
namespace {

using nlohmann::json;

// Returns a member of an object; null if there is none.
const json* Find(const json* value, const char* name) {
  if (value == nullptr || !value->is_object()) return nullptr;
  const auto found = value->find(name);
  return found == value->end() ? nullptr : &*found;
}

std::string Text(const json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

// Returns -1 if the value is not a non-negative integer.
int64_t Number(const json* value) {
  if (value == nullptr || !value->is_number_integer()) return -1;
  const auto number = value->get<int64_t>();
  return number < 0 ? -1 : number;
}

absl::StatusOr<HdfsStatus> StatusFrom(const json* value) {
  HdfsStatus status{.name = Text(Find(value, "pathSuffix")),
                    .bytes = Number(Find(value, "length")),
                    .modified = std::max<int64_t>(Number(Find(value, "modificationTime")), 0),
                    .id = std::max<int64_t>(Number(Find(value, "fileId")), 0)};
  const std::string type = Text(Find(value, "type"));
  if (type.empty() || status.bytes < 0) {
    return absl::DataLossError("the server reports a file without type or size");
  }
  if (type == "FILE") status.kind = HdfsStatus::Kind::kFile;
  if (type == "DIRECTORY") status.kind = HdfsStatus::Kind::kFolder;
  if (absl::StrContains(status.name, '/') || status.name == "." || status.name == "..") {
    return absl::DataLossError("the server lists an invalid file name");
  }
  return status;
}

}  // namespace

absl::StatusOr<HdfsStatus> ParseHdfsStatus(absl::string_view text) {
  const json parsed = base::ParseJson(text);
  return StatusFrom(Find(&parsed, "FileStatus"));
}

absl::StatusOr<HdfsPage> ParseHdfsPage(absl::string_view text) {
  const json parsed = base::ParseJson(text);
  HdfsPage page;
  const json* statuses = Find(&parsed, "FileStatuses");
  if (const json* listing = Find(&parsed, "DirectoryListing"); listing != nullptr) {
    statuses = Find(Find(listing, "partialListing"), "FileStatuses");
    page.remaining = Number(Find(listing, "remainingEntries"));
  }
  const json* list = Find(statuses, "FileStatus");
  if (list == nullptr || !list->is_array() || page.remaining < 0) {
    return absl::DataLossError("the server's response is not a listing");
  }
  for (const json& one : *list) {
    MUSTER_ASSIGN_OR_RETURN(HdfsStatus status, StatusFrom(&one));
    page.entries.push_back(std::move(status));
  }
  return page;
}

std::optional<HdfsException> ParseHdfsException(absl::string_view text) {
  const json parsed = base::ParseJson(text);
  const json* remote = Find(&parsed, "RemoteException");
  HdfsException exception{Text(Find(remote, "exception")), Text(Find(remote, "message"))};
  if (exception.name.empty()) return std::nullopt;
  exception.message.resize(std::min(exception.message.find('\n'), exception.message.size()));
  return exception;
}

std::optional<bool> ParseHdfsBoolean(absl::string_view text) {
  const json parsed = base::ParseJson(text);
  const json* value = Find(&parsed, "boolean");
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

}  // namespace muster::storage
