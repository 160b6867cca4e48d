#include "jobs/notebook/jupyter.h"

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "process/spawn.h"

namespace muster::jobs {
namespace {

using nlohmann::json;

// In order of preference.
constexpr const char* kServers[] = {"jupyter-lab", "jupyter-notebook", "jupyter-server"};
constexpr char kIdentity[] = "PasswordIdentityProvider";
constexpr char kHash[] = "hashed_password";

JupyterKind KindOf(absl::string_view program) {
  if (absl::StrContains(program, "lab")) return JupyterKind::kLab;
  if (absl::StrContains(program, "server")) return JupyterKind::kServer;
  return JupyterKind::kNotebook;
}

}  // namespace

absl::StatusOr<Jupyter> FindJupyter(const std::string& path,
                                    const std::map<std::string, std::string>& env,
                                    const std::string& working_dir) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (!path.empty() && name != "jupyter") {
    MUSTER_ASSIGN_OR_RETURN(std::string program, process::FindProgram(path, env, working_dir));
    return Jupyter{base::AbsolutePath(program, working_dir), KindOf(name)};
  }
  std::string folder;
  if (!path.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const std::string program,
                            process::FindProgram(path, env, working_dir));
    folder = base::FolderOf(base::AbsolutePath(program, working_dir));
  }
  for (const char* server : kServers) {
    const auto program = process::FindProgram(
        folder.empty() ? server : base::JoinPath(folder, server), env, working_dir);
    if (program.ok()) return Jupyter{base::AbsolutePath(*program, working_dir), KindOf(server)};
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no Jupyter ", folder.empty() ? "in PATH" : absl::StrCat("server in ", folder),
      ": install it with `apt install jupyter-notebook` or `pip install jupyterlab`, or name its "
      "program with --jupyter"));
}

std::string JupyterConfig(const JupyterSettings& settings) {
  const json common = {{"ip", "127.0.0.1"},
                       {"port_retries", 0},
                       {"open_browser", false},
                       {"allow_root", settings.as_root},
                       {"password", settings.password_hash},
                       {"password_required", true},
                       {"allow_password_change", false},
                       {"token", ""}};
  json notebook = common, server = common;
  notebook["notebook_dir"] = settings.root;
  server["root_dir"] = settings.root;
  // Notebook 5 and 6, jupyter-server 1, and jupyter-server 2 with what runs on it.
  return json({{"NotebookApp", std::move(notebook)},
               {"ServerApp", std::move(server)},
               {"IdentityProvider", {{"token", ""}}},
               {kIdentity,
                {{kHash, settings.password_hash},
                 {"password_required", true},
                 {"allow_password_change", false}}}})
      .dump(2, ' ', false, json::error_handler_t::replace);
}

std::string HashInConfig(absl::string_view config) {
  const json parsed = base::ParseJson(config);
  return base::TextMember(base::MemberOf(parsed, kIdentity), kHash);
}

std::string PageOf(JupyterKind kind, absl::string_view file) {
  switch (kind) {
    case JupyterKind::kLab:
      return absl::StrCat("/lab/tree/", file);
    case JupyterKind::kNotebook:
      return absl::StrCat("/notebooks/", file);
    case JupyterKind::kServer:
      return "/";
  }
  return "/";
}

}  // namespace muster::jobs
