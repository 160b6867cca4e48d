// The folder of a job on this machine, $MUSTER_HOME/jobs/<id>/. docs/formats/control.md lists its
// files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cluster/task_id.h"
#include "job/submission.h"

namespace muster::supervise {

// Paths and files in the folder of one job. Stores the path only; copies refer to the same folder.
class JobDir {
 public:
  explicit JobDir(std::string path) : path_(std::move(path)) {}

  // Returns the folder of job `id` under Muster's home. Does not access the file system.
  static JobDir Of(const std::string& home, const std::string& id);

  // Creates the folder and its subfolders with mode 0700. Returns AlreadyExists if the id is taken.
  absl::Status Create() const;
  // Writes submission.json and, if the job has a train section, train.json. Each file is replaced
  // atomically.
  absl::Status SaveSubmission(const job::Submission& submission) const;
  // Returns DataLoss if submission.json is not valid JSON.
  absl::StatusOr<job::Submission> LoadSubmission() const;

  // Allocates disk space that ReleaseSpace() frees for the verdict if the disk is full by then.
  // Returns ResourceExhausted if the disk is already full.
  absl::Status ReserveSpace() const;
  void ReleaseSpace() const;

  const std::string& path() const { return path_; }
  std::string logs() const { return path_ + "/logs"; }
  std::string supervisor_log() const { return path_ + "/supervisor.log"; }
  std::string train_config() const { return path_ + "/train.json"; }
  std::string versions() const { return path_ + "/versions"; }  // see worktree/version.h
  std::string tf_server() const;                                // job/tf_server.h
  std::string sockets() const { return path_ + "/sockets"; }    // Unix sockets between tasks
  std::string run_dir(const cluster::TaskId& task) const;       // contains error.json and progress
  std::string progress(const cluster::TaskId& task) const;  // written by the task; may not exist
  // The metrics of all attempts, appended by the task; may not exist.
  std::string metrics(const cluster::TaskId& task) const;
  std::string stacks(const cluster::TaskId& task, int attempt) const;
  std::string samples(const cluster::TaskId& task) const;  // supervise/usage/sample_file.h

 private:
  std::string path_;
};

}  // namespace muster::supervise
