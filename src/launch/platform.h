// Where jobs run. One implementation a platform: local/ (processes of this machine), ssh/ (of other
// hosts), kubernetes/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/cluster_spec.h"
#include "job/event_sink.h"
#include "job/task_launch.h"
#include "launch/lifecycle.h"
#include "launch/log_reader.h"
#include "launch/submission.h"
#include "launch/unsupported.h"

namespace muster {

// What an address is before a port has been picked for it. Port 1 is never picked.
inline constexpr char kUnassigned[] = "127.0.0.1:1";

// Tells that a job changed, so that whoever shows it need not ask again and again.
class JobWatch {
 public:
  virtual ~JobWatch() = default;
  virtual int fd() const = 0;  // readable when there may be something new
  // Takes what was signalled. False: nothing will come any more.
  virtual bool Drain() = 0;
};

// What a platform knows of a job that its record calls unfinished.
enum class Liveness {
  kAlive,
  kGone,     // nothing runs any more, and it did not say how it ended
  kUnknown,  // the platform does not answer: nothing may be concluded
};

// Called from one thread. Jobs go on without the process that submitted them.
class Platform {
 public:
  virtual ~Platform() = default;

  virtual absl::string_view name() const = 0;
  // What the job asks for and this platform does not do. A job with a fatal limit is not prepared.
  virtual std::vector<Limit> Unsupported(const Submission& /*submission*/) const { return {}; }
  // Whether its tasks are processes of this machine, with the files that are here.
  virtual bool runs_here() const { return false; }
  // Fills in where on the platform the job goes, and checks that it can go there. Changes nothing.
  virtual absl::Status Prepare(Submission& submission) = 0;
  // Where that is, for people: "on this machine".
  virtual std::string Describe(const Submission& submission) const = 0;
  // What its tasks will be reached by; kUnassigned where that is not known before they start.
  virtual absl::StatusOr<ClusterSpec> Addresses(const Submission& submission) const = 0;
  // What a task is started with the first time, when all tasks have these addresses.
  virtual absl::StatusOr<TaskLaunch> LaunchOf(const Submission& submission,
                                              const ClusterSpec& cluster,
                                              const TaskId& task) const = 0;
  // Starts the job and returns when it is certain to go on by itself. `record` is already kept in
  // the history; the platform reports everything after that. Unknown: it may have started, and
  // Observe() will tell.
  virtual absl::Status Submit(const Submission& submission, const JobRecord& record) = 0;
  virtual Liveness Check(const JobRecord& job) = 0;
  // Whether nobody on this machine watches over its jobs and reports: then who wants to know what
  // has become of one asks Observe(), and applies that to the history.
  virtual bool is_observed() const { return false; }
  // Whether Submit() may take long.
  virtual bool is_slow() const { return is_observed(); }
  // nullopt when there is nothing new. An error when the platform does not answer.
  virtual absl::StatusOr<std::optional<StateChange>> Observe(
      const JobRecord& /*job*/, const std::vector<TaskRecord>& /*tasks*/) {
    return std::nullopt;
  }
  // The jobs that are there, whoever started them; their ids are those of the platform. Of one that
  // is not observed the history knows all.
  virtual absl::StatusOr<std::vector<JobRecord>> List(const nlohmann::json& /*place*/) {
    return std::vector<JobRecord>();
  }
  // One of those as a submission of ours, with an id that no other job ever has. NotFound.
  virtual absl::StatusOr<Submission> Import(const std::string& id,
                                            const nlohmann::json& /*place*/) {
    return absl::NotFoundError(absl::StrCat("no job '", id, "' of others on ", name()));
  }
  // Asks the job to end, and does not wait for it. `at_once`: without a grace period.
  virtual absl::Status Stop(const JobRecord& job, bool at_once) = 0;
  // What Update would do.
  virtual absl::StatusOr<UpdatePlan> PlanUpdate(const JobRecord& job,
                                                const std::vector<TaskRecord>& tasks,
                                                const Submission& next) = 0;
  virtual absl::Status Update(const JobRecord& job, const Submission& next) = 0;
  // Unavailable when the job has ended.
  virtual absl::StatusOr<std::unique_ptr<JobWatch>> Watch(const JobRecord& job) = 0;
  virtual absl::StatusOr<std::unique_ptr<LogStream>> Logs(const JobRecord& job,
                                                          const std::vector<TaskId>& tasks) = 0;
  // How often a platform is asked that tells nothing by itself. InvalidArgument where nobody need
  // ask.
  virtual absl::Status SetPollingInterval(absl::Duration /*interval*/) {
    return absl::InvalidArgumentError(
        absl::StrCat("--polling-interval is for jobs on vertex; ", name(), " tells at once"));
  }
};

}  // namespace muster
