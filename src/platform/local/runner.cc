#include "platform/local/runner.h"

#include <unistd.h>

#include <climits>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "platform/local/addresses.h"
#include "platform/local/launch.h"
#include "process/tree.h"
#include "worktree/version.h"

namespace muster::local {
namespace {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  return name;
}

// Replaces absolute paths in the directory `from` by those in its view `to`: of the program's files
// in the command, and of the task's directory.
void MovePaths(const std::string& from, const std::string& to, job::TaskLaunch& launch) {
  const auto moved = [&](absl::string_view path) {
    const bool is_inside = absl::ConsumePrefix(&path, from) && (path.empty() || path[0] == '/');
    return is_inside ? absl::StrCat(to, path) : "";
  };
  std::error_code error;
  for (std::string& word : launch.argv) {
    const std::string path = moved(word);
    // A link leads to a file that is not part of the program, under the same path as before.
    if (!path.empty() && std::filesystem::symlink_status(path, error).type() ==
                             std::filesystem::file_type::regular) {
      word = path;
    }
  }
  const std::string folder = moved(launch.working_dir);
  if (std::filesystem::is_directory(folder, error)) launch.working_dir = folder;
}

}  // namespace

LocalRunner::LocalRunner(supervise::JobDir dir, const std::string& job_id, process::EventLoop& loop,
                         supervise::RunnerEvents& events)
    : dir_(std::move(dir)),
      host_(HostName()),
      events_(events),
      processes_(dir_, job_id, loop, events) {}

absl::StatusOr<cluster::ClusterSpec> LocalRunner::Assign(const job::Submission& next,
                                                         const cluster::ClusterSpec& current) {
  return AssignAddresses(next.spec, current, ports_);
}

void LocalRunner::Release(const cluster::ClusterSpec& left, const cluster::ClusterSpec& kept) {
  const std::set<int> needed = PortsOf(kept);
  for (const int port : PortsOf(left)) {
    if (!needed.contains(port)) ports_.Release(port);
  }
}

std::optional<std::string> LocalRunner::AnotherAddress(const cluster::TaskId& /*task*/,
                                                       absl::string_view address) {
  // The new port is reserved before the old one is released, so that it differs.
  const auto port = ports_.Reserve();
  if (!port.ok()) return std::nullopt;
  ports_.Release(cluster::PortOf(address));
  return absl::StrCat("127.0.0.1:", *port);
}

bool LocalRunner::IsPicked(const job::JobSpec& spec, const cluster::TaskId& task) const {
  return local::IsPicked(spec, task);
}

absl::StatusOr<job::TaskLaunch> LocalRunner::LaunchOf(const job::Submission& submission,
                                                      const cluster::ClusterSpec& cluster,
                                                      const cluster::TaskId& task, int attempt,
                                                      int restarts) const {
  if (attempt == 0) return local::LaunchOf(dir_, submission, cluster, task, attempt, restarts);
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, WorkFolder(submission, task));
  if (folder == submission.working_dir) {
    return local::LaunchOf(dir_, submission, cluster, task, attempt, restarts);
  }
  job::Submission moved = submission;
  moved.working_dir = folder;
  MUSTER_ASSIGN_OR_RETURN(job::TaskLaunch launch,
                          local::LaunchOf(dir_, moved, cluster, task, attempt, restarts));
  MovePaths(submission.working_dir, folder, launch);
  return launch;
}

absl::StatusOr<std::string> LocalRunner::WorkFolder(const job::Submission& submission,
                                                    const cluster::TaskId& task) const {
  const std::string& root = submission.working_dir;
  const std::string& id = submission.version.program;
  const job::RoleSpec* role = submission.spec.FindRole(task.role);
  if (id.empty() || role == nullptr || role->command.empty()) return root;
  const worktree::VersionStore versions(dir_.versions());
  auto version = versions.Load(id);
  if (!version.ok()) {
    return base::Annotate(version.status(), "the program that the job was started with is lost");
  }
  const std::string changed = worktree::FirstChange(root, *version);
  if (changed.empty()) return root;
  const std::string view = absl::StrCat(dir_.path(), "/view-", id.substr(0, 16));
  if (absl::Status made = versions.MakeView(id, root, view); !made.ok()) {
    return base::Annotate(made, "cannot restore the program that the job was started with");
  }
  events_.OnNote(
      "restart", task.ToString(),
      absl::StrCat(changed, " was edited while the job ran; restarting with the version ",
                   "that it was started with, in ", view,
                   " (`muster run` again applies the edit)"));
  return view;
}

absl::StatusOr<supervise::UpdatePlan> LocalRunner::PlanUpdate(const job::Submission& current,
                                                              const cluster::ClusterSpec& cluster,
                                                              const job::Submission& next) const {
  return local::PlanUpdate(dir_, current, cluster, next);
}

bool LocalRunner::Finish() {
  for (const pid_t pid : process::KillAllDescendants()) {
    events_.OnNote("job", "",
                   absl::StrCat("cannot end process ", pid,
                                ": it belongs to another user, or is stuck in the kernel"));
  }
  return true;
}

}  // namespace muster::local
