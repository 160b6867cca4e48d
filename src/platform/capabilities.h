// Capabilities: features that only some platforms have. A platform has a capability if its class
// also implements the interface:
//
//   if (auto* catalog = CapabilityOf<JobCatalog>(platform)) catalog->List(where);
//
// Code outside a platform's folder asks for a capability, never for the platform's name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "platform/finding.h"
#include "platform/images.h"
#include "platform/machine.h"
#include "platform/platform.h"
#include "supervise/lifecycle.h"

namespace muster::platform {

// State of a job that its record calls unfinished.
enum class Liveness {
  kAlive,
  kGone,     // nothing runs, and no outcome was recorded
  kUnknown,  // no conclusion is possible
};

// Jobs run under a supervisor on this machine, which records every change.
class Supervision {
 public:
  virtual ~Supervision() = default;
  // Returns the liveness of a job that its record calls unfinished.
  virtual Liveness Check(const job::JobRecord& job) = 0;
  // Kills the processes on this machine left behind by a job whose supervisor died. Returns their
  // number.
  virtual int KillLeftovers(const job::JobRecord& job) = 0;
};

// No process on this machine records the state of jobs: the caller polls Observe() and applies the
// result to the history.
class StateSource {
 public:
  virtual ~StateSource() = default;
  // Compares the platform's state of the job with the records. Returns the difference, nullopt if
  // there is none, or an error if the platform does not answer.
  virtual absl::StatusOr<std::optional<job::StateChange>> Observe(
      const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) = 0;
};

// The platform lists jobs itself, including those that other clients submitted.
class JobCatalog {
 public:
  virtual ~JobCatalog() = default;
  // Returns all jobs at `where`, newest first, under the platform's own ids.
  virtual absl::StatusOr<std::vector<job::JobRecord>> List(const job::Target& where) = 0;
  // Returns a job from List() as a submission whose id no other job ever has, or NotFound.
  virtual absl::StatusOr<job::Submission> Import(const std::string& id,
                                                 const job::Target& where) = 0;
};

// Running jobs can be changed.
class JobUpdater {
 public:
  virtual ~JobUpdater() = default;
  // Returns the changes that Update() would make. Changes nothing.
  virtual absl::StatusOr<supervise::UpdatePlan> PlanUpdate(
      const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks,
      const job::Submission& next) = 0;
  // Replaces the specification of a running job with `next`, keeping its id.
  virtual absl::Status Update(const job::JobRecord& job, const job::Submission& next) = 0;
};

// The platform decides for each job whether its tasks get the files of the working directory.
// Without this capability, Traits::work_dir holds for all jobs.
class FileSelection {
 public:
  virtual ~FileSelection() = default;
  // REQUIRES: Prepare() has accepted the submission.
  virtual WorkDirUse WorkDirUseOf(const job::Submission& submission) const = 0;
  // Returns in one line which files the tasks get; "" if none.
  virtual absl::StatusOr<std::string> DescribeFiles(const job::Submission& submission) const = 0;
};

// The platform knows the machines on which tasks run.
class MachineInventory {
 public:
  virtual ~MachineInventory() = default;
  // Returns the machines of a job. Returns what the records contain if the platform does not
  // answer.
  virtual std::vector<Machine> Machines(const job::JobRecord& job,
                                        const std::vector<job::TaskRecord>& tasks) = 0;
};

// The platform sends no notifications, so Watch() polls.
class PollingControl {
 public:
  virtual ~PollingControl() = default;
  // Returns InvalidArgument if the interval is not positive.
  virtual absl::Status SetPollingInterval(absl::Duration interval) = 0;
};

// The user may choose the id of a job, and a submission may fail after it claimed its id.
class ChosenIds {
 public:
  virtual ~ChosenIds() = default;
  // Returns InvalidArgument if the platform does not accept the id.
  virtual absl::Status CheckId(const std::string& id) const = 0;
  // Returns true if the submission is not known to have created a job.
  virtual bool IsUnmade(const job::Submission& submission) const = 0;
  // Prepares `next` to reuse the id of `unmade`; nullptr = the id is new.
  virtual void ReuseId(const job::Submission* unmade, job::Submission& next) const = 0;
};

// The platform checks a job before it starts.
class JobPreflight {
 public:
  virtual ~JobPreflight() = default;
  // `thorough` also tries steps of the start itself, such as reserving ports.
  virtual absl::StatusOr<std::vector<Finding>> CheckJob(const job::Submission& submission,
                                                        bool thorough) = 0;
};

// The platform checks the machines of a target.
class TargetPreflight {
 public:
  virtual ~TargetPreflight() = default;
  virtual absl::StatusOr<std::vector<Finding>> CheckTarget(const job::Target& target) = 0;
};

// Tasks of the built-in trainer run from an image of Muster, which the user may want pushed.
class ImageUser {
 public:
  virtual ~ImageUser() = default;
  // Returns the images of Muster that the job needs in the repository that its target names; none
  // if it names no repository. REQUIRES: Prepare() accepted the submission.
  virtual std::vector<Image> RequiredImages(const job::Submission& submission) const = 0;
};

struct EvaluationRequest {
  std::string train_folder;      // the folder of a training run on the platform
  std::string split;             // "" = that of the run's evaluations, else test
  std::string which = "latest";  // STEP, best or latest
  job::Target target;            // overrides fields of the training's target
  std::string working_dir;       // sent if the target asks for a new package
  bool send_home = false;        // the working directory may be the user's home
};

// A trained model is evaluated on the platform, by a job of its own.
class RemoteEvaluation {
 public:
  virtual ~RemoteEvaluation() = default;
  // Returns the job of the evaluation, without an id.
  virtual absl::StatusOr<job::Submission> EvaluationOf(const EvaluationRequest& request) = 0;
  // Completes the submission once its id is final. Returns the URL of the result that it writes.
  virtual std::string SetResultFile(job::Submission& submission) const = 0;
};

// How to reach the notebook of a job.
struct NotebookAccess {
  struct Port {
    std::string name;  // "notebook" or "tensorboard"
    int number = 0;
  };
  std::string name;
  bool ready = false;
  std::string address;  // from outside; "" = only through `forward`
  std::vector<Port> ports;
  std::vector<std::string> forward;  // the command that makes the ports reachable on localhost
  std::vector<std::string> logs;     // the command that prints the notebook's log
  bool has_password = false;
};

class NotebookHost {
 public:
  virtual ~NotebookHost() = default;
  // Returns NotFound if the notebook does not exist. A submission without an id is a job file whose
  // objects were applied by hand.
  virtual absl::StatusOr<NotebookAccess> FindNotebook(const job::Submission& submission) = 0;
};

// Some jobs are not submitted: `muster render` prints their objects, which the user creates.
class RenderedJobs {
 public:
  virtual ~RenderedJobs() = default;
  // Returns the addresses of the tasks of such a job, or nullopt if the job is submitted. Contacts
  // no cluster.
  virtual std::optional<cluster::ClusterSpec> RenderedAddresses(
      const job::Submission& submission) const = 0;
};

// Returns the platform's implementation of a capability, or null if it has none.
template <typename Capability>
Capability* CapabilityOf(Platform& platform) {
  return dynamic_cast<Capability*>(&platform);
}

// Returns how tasks of the job get the files of the working directory. REQUIRES: Prepare() has
// accepted the submission.
inline WorkDirUse WorkDirUseOf(Platform& platform, const job::Submission& submission) {
  const auto* selection = CapabilityOf<FileSelection>(platform);
  return selection == nullptr ? platform.traits().work_dir : selection->WorkDirUseOf(submission);
}

}  // namespace muster::platform
