#include "platform/supervised_platform.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "process/identity.h"
#include "process/spawn.h"
#include "supervise/control.h"
#include "supervise/leftovers.h"

namespace muster::platform {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);

class ControlWatch final : public JobWatch {
 public:
  explicit ControlWatch(supervise::ControlClient client) : client_(std::move(client)) {}
  int fd() const override { return client_.fd(); }
  bool Drain() override { return client_.DrainNotifications(); }

 private:
  supervise::ControlClient client_;
};

absl::Status Request(const job::JobRecord& job, const nlohmann::json& request) {
  MUSTER_ASSIGN_OR_RETURN(supervise::ControlClient client,
                          supervise::ControlClient::Connect(job.directory));
  return client.Call(request, kCallTimeout).status();
}

cluster::ClusterSpec ClusterOf(const std::vector<job::TaskRecord>& tasks) {
  cluster::ClusterSpec cluster;
  for (const job::TaskRecord& task : tasks) cluster.Set(task.id, task.address);
  return cluster;
}

}  // namespace

std::vector<Limit> SupervisedPlatform::Unsupported(const job::Submission& submission) const {
  const job::JobSpec& spec = submission.spec;
  std::vector<Limit> limits;
  for (const job::RoleSpec& role : spec.roles) {
    const auto add = [&](absl::string_view field, absl::string_view instead) {
      limits.push_back({.what = RoleLimit(role, field, instead)});
    };
    if (!role.image.empty())
      add("image", "ignored; tasks run as processes with the software installed on their machine");
    if (role.resources != job::Resources()) {
      add("resources", "not enforced; `muster doctor` lists the resources of the machine");
    }
    if (!role.pod.is_null()) add("template", kOnlyContainer);
    if (!role.kubernetes.is_null()) add("kubernetes", kForKubernetesAlone);
  }
  AddKubernetesLimits(spec, limits);
  AddEntryPointLimits(spec, limits);
  return limits;
}

absl::Status SupervisedPlatform::StartSupervisor(const supervise::JobDir& dir) const {
  const base::UniqueFd log(
      ::open(dir.supervisor_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return absl::ErrnoToStatus(errno, dir.supervisor_log());
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  base::UniqueFd report(fds[0]), child_end(fds[1]);
  MUSTER_RETURN_IF_ERROR(
      process::Spawn({.argv = {program_, "supervise", dir.path()},
                      .env = process::CurrentEnvironment(),
                      .working_dir = "/",  // does not keep a mount of the user busy
                      .stdin_fd = child_end.get(),
                      .output_fd = log.get(),
                      .new_session = true})
          .status());
  // The child now holds the only other end, so ReadAll() returns when the child reports or dies.
  child_end.Reset();
  MUSTER_ASSIGN_OR_RETURN(const std::string answer, base::ReadAll(report.get(), 1 << 20));
  if (answer == "ok\n") return absl::OkStatus();
  return absl::FailedPreconditionError(
      answer.empty()
          ? absl::StrCat("the supervisor died during startup; see ", dir.supervisor_log())
          : answer);
}

Liveness SupervisedPlatform::Check(const job::JobRecord& job) {
  if (job.supervisor.has_value()) {
    switch (process::FindProcess(*job.supervisor)) {
      case process::Existence::kAlive:
        return Liveness::kAlive;
      case process::Existence::kEnded:
        return Liveness::kGone;
      case process::Existence::kUnknown:
        return Liveness::kUnknown;
    }
  }
  // The record was rebuilt from the job's folder and has no supervisor. A live supervisor serves
  // the socket; a job that has ended has its verdict in the folder and is not checked.
  return supervise::ControlClient::Connect(job.directory).ok() ? Liveness::kAlive : Liveness::kGone;
}

int SupervisedPlatform::KillLeftovers(const job::JobRecord& job) {
  return supervise::KillLeftovers(job.id);
}

absl::Status SupervisedPlatform::Stop(const job::JobRecord& job, bool immediately) {
  return Request(job, {{"op", "stop"}, {"immediately", immediately}});
}

absl::StatusOr<supervise::UpdatePlan> SupervisedPlatform::PlanUpdate(
    const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks,
    const job::Submission& next) {
  const supervise::JobDir dir(job.directory);
  MUSTER_ASSIGN_OR_RETURN(const job::Submission current, dir.LoadSubmission());
  job::Submission renamed = next;  // the running job keeps its identity
  renamed.id = current.id;
  renamed.resumed_from = current.resumed_from;
  renamed.resume_step = current.resume_step;
  return PlanChange(dir, current, ClusterOf(tasks), renamed);
}

absl::Status SupervisedPlatform::Update(const job::JobRecord& job, const job::Submission& next) {
  return Request(job, {{"op", "update"}, {"submission", job::SubmissionToJson(next)}});
}

absl::StatusOr<std::unique_ptr<JobWatch>> SupervisedPlatform::Watch(const job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(supervise::ControlClient client,
                          supervise::ControlClient::Connect(job.directory));
  MUSTER_RETURN_IF_ERROR(client.Call({{"op", "watch"}}, kCallTimeout).status());
  return std::make_unique<ControlWatch>(std::move(client));
}

absl::StatusOr<std::unique_ptr<supervise::LogStream>> SupervisedPlatform::Logs(
    const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) {
  return std::make_unique<supervise::MergedLogReader>(supervise::JobDir(job.directory).logs(),
                                                      tasks);
}

}  // namespace muster::platform
