// What a notebook is about: a job, or a job file that need not have run.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "jobs/notebook/folder.h"
#include "jobs/service.h"

namespace muster::jobs {

struct NotebookSubject {
  std::string job;  // the id, or the name in the job file
  NotebookFolder folder;
  // The variables of the job for a program that is not one of its tasks: TF_CONFIG without a task,
  // CLUSTER_CONFIG, MUSTER_MODEL_DIR, MUSTER_NOTEBOOK_JOB and others. MUSTER_JOB_ID is not among
  // them, because Muster ends the processes that have it with the job.
  std::map<std::string, std::string> env;
  std::string working_dir;  // of the job's programs
  std::string password;     // of the file's notebook section; "" = none
  int port = 0;             // likewise; 0 = none
};

absl::StatusOr<NotebookSubject> SubjectOf(Service& service, const job::JobRecord& job);
// For a job file. The addresses of its tasks are those of `muster env`; where the platform assigns
// them at the start, there are none, with a notice.
absl::StatusOr<NotebookSubject> SubjectOfFile(Service& service, job::Submission submission);

struct NotebookOptions {
  std::string jupyter;         // the program; "" = found in PATH
  std::string jupyter_folder;  // to which `jupyter` is relative
  std::string password_hash;
  int port = 0;  // 0 = that of the file, else any free one
  int timeout_seconds = 60;
  bool attached = true;
};

// A notebook whose files are written and that can be started.
struct PreparedNotebook {
  NotebookLaunch launch;
  std::map<std::string, std::string> env;  // the whole environment
};

// Finds Jupyter and writes its configuration and the ready notebook. REQUIRES: the start_lock() of
// the subject's folder is held. Returns NotFound if there is no Jupyter.
absl::StatusOr<PreparedNotebook> PrepareNotebook(const NotebookSubject& subject,
                                                 const NotebookOptions& options);

}  // namespace muster::jobs
