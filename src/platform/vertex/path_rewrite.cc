#include "platform/vertex/path_rewrite.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "storage/url.h"

namespace muster::vertex {
namespace {

bool IsBelow(absl::string_view path, absl::string_view folder) {
  return path == folder || (absl::StartsWith(path, folder) && path.size() > folder.size() &&
                            (folder == "/" || path[folder.size()] == '/'));
}

std::string Moved(const std::string& path, absl::string_view from, absl::string_view to) {
  return IsBelow(path, from) ? absl::StrCat(to, path.substr(from.size())) : path;
}

void MoveTexts(nlohmann::json& json, absl::string_view from, absl::string_view to) {
  if (json.is_string()) {
    json = Moved(json.get<std::string>(), from, to);
  } else if (json.is_structured()) {
    for (nlohmann::json& member : json) MoveTexts(member, from, to);
  }
}

absl::Status CheckPath(absl::string_view what, const std::string& path, absl::string_view advice,
                       const std::string& working_dir, const IsSent& is_sent) {
  // Only absolute paths refer to files of this machine.
  if (path.empty() || path.front() != '/') return absl::OkStatus();
  const bool below = IsBelow(path, working_dir);
  if (below) {
    const absl::string_view rest = absl::string_view(path).substr(working_dir.size());
    if (is_sent(rest.empty() ? rest : rest.substr(1))) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", path, ", which ",
                   below ? "is not sent with the job: it does not exist, or .gitignore lists it"
                         : "only this machine has",
                   "; ", advice));
}

}  // namespace

absl::Status CheckPaths(const job::JobSpec& spec, const std::string& working_dir,
                        const IsSent& is_sent) {
  if (!spec.train.is_object()) return absl::OkStatus();
  const auto text = [](const nlohmann::json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>()
                                                                         : "";
  };
  const nlohmann::json data = spec.train.value("data", nlohmann::json::object());
  const absl::Status status = CheckPath(
      "'path' of data", text(data, "path"),
      "copy it to the bucket (muster storage cp -r DIR gs://BUCKET/data) and pass --dataset "
      "gs://BUCKET/data",
      working_dir, is_sent);
  if (!status.ok()) return status;
  return CheckPath("'model' of train", text(spec.train, "model"),
                   "put it into the working directory, or at a URL", working_dir, is_sent);
}

job::JobSpec MovePaths(job::JobSpec spec, absl::string_view from, absl::string_view to) {
  MoveTexts(spec.train, from, to);
  for (job::RoleSpec& role : spec.roles) role.working_dir = Moved(role.working_dir, from, to);
  return spec;
}

}  // namespace muster::vertex
