// The folder of a job on this machine, $MUSTER_HOME/jobs/<id>/, and what `muster run` hands over in
// it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "launch/submission.h"

namespace muster {

class JobDir {
 public:
  explicit JobDir(std::string path) : path_(std::move(path)) {}

  // The folder of job `id` under `home`.
  static JobDir Of(const std::string& home, const std::string& id);

  // Creates the folder and its parts, mode 0700. AlreadyExists when the id is taken.
  absl::Status Create() const;
  absl::Status SaveSubmission(const Submission& submission) const;
  absl::StatusOr<Submission> LoadSubmission() const;

  // Takes disk space that is given back to write the verdict when the disk is full.
  // ResourceExhausted when it is full already.
  absl::Status ReserveSpace() const;
  void ReleaseSpace() const;

  const std::string& path() const { return path_; }
  std::string logs() const { return path_ + "/logs"; }
  std::string supervisor_log() const { return path_ + "/supervisor.log"; }
  std::string train_config() const { return path_ + "/train.json"; }
  std::string sockets() const { return path_ + "/sockets"; }  // the tasks', among themselves
  std::string run_dir(const TaskId& task) const;              // for error.json and progress
  std::string progress(const TaskId& task) const;             // written by the task; may be absent
  std::string stacks(const TaskId& task, int attempt) const;

 private:
  std::string path_;
};

}  // namespace muster
