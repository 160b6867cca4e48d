#include "jobs/notebook/folder.h"

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "supervise/log/log_reader.h"

namespace muster::jobs {
namespace {

const cluster::TaskId& LogName() {
  static const auto& kName = *new cluster::TaskId{"notebook", 0};
  return kName;
}

}  // namespace

NotebookFolder NotebookFolder::OfJob(const std::string& job_dir) {
  return NotebookFolder(base::JoinPath(job_dir, "notebook"));
}

absl::Status NotebookFolder::Create() const {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(files()));
  return base::MakeDirectories(runtime());
}

std::string NotebookFolder::notebook() const { return base::JoinPath(files(), kNotebook); }

std::string NotebookFolder::log() const {
  return absl::StrCat(path_, "/", LogName().role, "-", LogName().index, ".log");
}

std::vector<std::string> NotebookFolder::LastLines(int count) const {
  return supervise::LastLines(path_, LogName(), count);
}

absl::Status NotebookLaunch::Save(const NotebookFolder& folder) const {
  const nlohmann::json json = {{"argv", argv},
                               {"port", port},
                               {"page", page},
                               {"timeout_seconds", timeout_seconds},
                               {"attached", attached}};
  return base::ReplaceFile(folder.launch(),
                           json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

absl::StatusOr<NotebookLaunch> NotebookLaunch::Load(const NotebookFolder& folder) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(folder.launch()));
  const nlohmann::json json = base::ParseJson(text);
  NotebookLaunch launch{
      .argv = base::TextListMember(json, "argv"),
      .port = static_cast<int>(base::IntMember(json, "port")),
      .page = base::TextMember(json, "page"),
      .timeout_seconds = static_cast<int>(base::IntMember(json, "timeout_seconds")),
      .attached = base::BoolMember(json, "attached")};
  if (launch.argv.empty()) return absl::DataLossError(absl::StrCat(folder.launch(), " is damaged"));
  return launch;
}

}  // namespace muster::jobs
