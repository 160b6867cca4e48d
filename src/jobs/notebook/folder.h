// The private folder of a notebook on this machine.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::jobs {

// Paths in the folder. docs/formats/control.md lists the files.
class NotebookFolder {
 public:
  explicit NotebookFolder(std::string path) : path_(std::move(path)) {}

  // Returns the folder within that of a job (supervise/job_dir.h).
  static NotebookFolder OfJob(const std::string& job_dir);

  // Creates the folder and its subfolders with mode 0700.
  absl::Status Create() const;

  const std::string& path() const { return path_; }
  std::string start_lock() const { return path_ + "/start.lock"; }    // held during a start
  std::string server_lock() const { return path_ + "/server.lock"; }  // held while it runs
  std::string config() const { return path_ + "/jupyter.json"; }      // has the password's hash
  std::string launch() const { return path_ + "/launch.json"; }
  std::string ended() const { return path_ + "/ended"; }  // how the last one ended by itself
  std::string runtime() const { return path_ + "/runtime"; }
  std::string files() const { return path_ + "/files"; }  // what Jupyter shows
  std::string notebook() const;
  std::string notebook_record() const { return path_ + "/ready.sha256"; }
  // The log has the name and the form of a task's, without an index.
  std::string log() const;
  // Returns the last lines of the log in printable form.
  std::vector<std::string> LastLines(int count) const;

  static constexpr char kNotebook[] = "metrics.ipynb";

 private:
  std::string path_;
};

// The input of the server process.
struct NotebookLaunch {
  std::vector<std::string> argv;
  int port = 0;      // 0 = any free one
  std::string page;  // of the link
  int timeout_seconds = 60;
  bool attached = true;  // ends with the process that started it

  absl::Status Save(const NotebookFolder& folder) const;
  // Returns DataLoss if the file is not one that Save() wrote.
  static absl::StatusOr<NotebookLaunch> Load(const NotebookFolder& folder);
};

}  // namespace muster::jobs
