#include "platform/supervised_platform.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "process/identity.h"
#include "process/spawn.h"
#include "supervise/control.h"

namespace muster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);

class ControlWatch final : public JobWatch {
 public:
  explicit ControlWatch(ControlClient client) : client_(std::move(client)) {}
  int fd() const override { return client_.fd(); }
  bool Drain() override { return client_.DrainNotifications(); }

 private:
  ControlClient client_;
};

absl::Status Request(const JobRecord& job, const nlohmann::json& request) {
  MUSTER_ASSIGN_OR_RETURN(ControlClient client, ControlClient::Connect(job.directory));
  return client.Call(request, kCallTimeout).status();
}

ClusterSpec ClusterOf(const std::vector<TaskRecord>& tasks) {
  ClusterSpec cluster;
  for (const TaskRecord& task : tasks) cluster.Set(task.id, task.address);
  return cluster;
}

}  // namespace

std::vector<Limit> SupervisedPlatform::Unsupported(const Submission& submission) const {
  const JobSpec& spec = submission.spec;
  std::vector<Limit> limits;
  for (const RoleSpec& role : spec.roles) {
    const auto add = [&](absl::string_view field, absl::string_view instead) {
      limits.push_back({.what = NotOfRole(role, field, instead)});
    };
    if (!role.image.empty())
      add("image", "its tasks are processes, with what is installed where they run");
    if (role.resources != Resources()) {
      add("resources", "its tasks take what their machine has; `muster doctor` says what that is");
    }
    if (!role.pod.is_null()) add("template", kOnlyContainer);
    if (!role.kubernetes.is_null()) add("kubernetes", kForKubernetesAlone);
  }
  AddKubernetesLimits(spec, limits);
  return limits;
}

absl::Status SupervisedPlatform::StartSupervisor(const JobDir& dir) const {
  const UniqueFd log(
      ::open(dir.supervisor_log().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return absl::ErrnoToStatus(errno, dir.supervisor_log());
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  UniqueFd report(fds[0]), child_end(fds[1]);
  MUSTER_RETURN_IF_ERROR(Spawn({.argv = {program_, "supervise", dir.path()},
                                .env = CurrentEnvironment(),
                                .working_dir = "/",  // does not keep a mount of the user busy
                                .stdin_fd = child_end.get(),
                                .output_fd = log.get(),
                                .new_session = true})
                             .status());
  // The child now holds the only other end, so ReadAll() returns at its report or at its death.
  child_end.Reset();
  MUSTER_ASSIGN_OR_RETURN(const std::string answer, ReadAll(report.get(), 1 << 20));
  if (answer == "ok\n") return absl::OkStatus();
  return absl::FailedPreconditionError(
      answer.empty() ? absl::StrCat("the supervisor died at its start; see ", dir.supervisor_log())
                     : answer);
}

Liveness SupervisedPlatform::Check(const JobRecord& job) {
  if (job.supervisor.has_value()) {
    switch (FindProcess(*job.supervisor)) {
      case Existence::kAlive:
        return Liveness::kAlive;
      case Existence::kEnded:
        return Liveness::kGone;
      case Existence::kUnknown:
        return Liveness::kUnknown;
    }
  }
  // The record was rebuilt from the job's folder and has no supervisor. A live supervisor serves
  // the socket; a job that has ended has its verdict in the folder and is not checked.
  return ControlClient::Connect(job.directory).ok() ? Liveness::kAlive : Liveness::kGone;
}

absl::Status SupervisedPlatform::Stop(const JobRecord& job, bool immediately) {
  return Request(job, {{"op", "stop"}, {"immediately", immediately}});
}

absl::StatusOr<UpdatePlan> SupervisedPlatform::PlanUpdate(const JobRecord& job,
                                                          const std::vector<TaskRecord>& tasks,
                                                          const Submission& next) {
  const JobDir dir(job.directory);
  MUSTER_ASSIGN_OR_RETURN(const Submission current, dir.LoadSubmission());
  Submission renamed = next;  // the running job keeps its identity
  renamed.id = current.id;
  renamed.resumed_from = current.resumed_from;
  renamed.resume_step = current.resume_step;
  return PlanChange(dir, current, ClusterOf(tasks), renamed);
}

absl::Status SupervisedPlatform::Update(const JobRecord& job, const Submission& next) {
  return Request(job, {{"op", "update"}, {"submission", SubmissionToJson(next)}});
}

absl::StatusOr<std::unique_ptr<JobWatch>> SupervisedPlatform::Watch(const JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(ControlClient client, ControlClient::Connect(job.directory));
  MUSTER_RETURN_IF_ERROR(client.Call({{"op", "watch"}}, kCallTimeout).status());
  return std::make_unique<ControlWatch>(std::move(client));
}

absl::StatusOr<std::unique_ptr<LogStream>> SupervisedPlatform::Logs(
    const JobRecord& job, const std::vector<TaskId>& tasks) {
  return std::make_unique<MergedLogReader>(JobDir(job.directory).logs(), tasks);
}

}  // namespace muster
