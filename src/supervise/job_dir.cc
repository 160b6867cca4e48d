#include "supervise/job_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "job/tf_server.h"

namespace muster::supervise {
namespace {

constexpr int64_t kMaxSubmissionBytes = 64 << 20;
constexpr off_t kReserveBytes = 256 << 10;

}  // namespace

JobDir JobDir::Of(const std::string& home, const std::string& id) {
  return JobDir(absl::StrCat(home, "/jobs/", id));
}

std::string JobDir::run_dir(const cluster::TaskId& task) const {
  return absl::StrCat(path_, "/run/", task.role, "-", task.index);
}

std::string JobDir::progress(const cluster::TaskId& task) const {
  return run_dir(task) + "/progress";
}

std::string JobDir::metrics(const cluster::TaskId& task) const {
  return run_dir(task) + "/metrics.jsonl";
}

std::string JobDir::stacks(const cluster::TaskId& task, int attempt) const {
  return absl::StrCat(path_, "/stacks/", task.role, "-", task.index, ".attempt-", attempt, ".txt");
}

std::string JobDir::samples(const cluster::TaskId& task) const {
  return absl::StrCat(path_, "/samples/", task.role, "-", task.index, ".bin");
}

absl::Status JobDir::Create() const {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(path_.substr(0, path_.rfind('/'))));
  // mkdir claims the id: it fails if the folder exists.
  if (::mkdir(path_.c_str(), 0700) != 0) return absl::ErrnoToStatus(errno, path_);
  for (const char* part : {"/logs", "/run", "/samples", "/sockets", "/stacks"}) {
    MUSTER_RETURN_IF_ERROR(base::MakeDirectories(path_ + part));
  }
  return absl::OkStatus();
}

absl::Status JobDir::ReserveSpace() const {
  const base::UniqueFd fd(
      ::open((path_ + "/reserve").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const int error = fd.valid() ? ::posix_fallocate(fd.get(), 0, kReserveBytes) : errno;
  // EOPNOTSUPP: the file system cannot reserve space, and the job runs without.
  if (error == 0 || error == EOPNOTSUPP) return absl::OkStatus();
  ReleaseSpace();
  return base::DiskError(
      error, absl::StrCat("cannot reserve disk space for the job's records in ", path_));
}

void JobDir::ReleaseSpace() const { ::unlink((path_ + "/reserve").c_str()); }

absl::Status JobDir::SaveSubmission(const job::Submission& submission) const {
  // ParseJob rejects job files that are not UTF-8. Paths may contain any bytes; invalid ones are
  // replaced.
  const std::string text = job::SubmissionToJson(submission)
                               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(path_ + "/submission.json", text));
  if (!submission.spec.train.is_null()) {
    MUSTER_RETURN_IF_ERROR(
        base::WriteFileAtomically(train_config(), submission.spec.train.dump(2)));
  }
  if (job::NeedsTfServer(submission.spec)) {
    MUSTER_RETURN_IF_ERROR(base::WriteFileAtomically(tf_server(), job::TfServerProgram()));
  }
  return absl::OkStatus();
}

std::string JobDir::tf_server() const { return absl::StrCat(path_, "/", job::kTfServerFile); }

absl::StatusOr<job::Submission> JobDir::LoadSubmission() const {
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          base::ReadFile(path_ + "/submission.json", kMaxSubmissionBytes));
  const auto json = base::ParseJson(text);
  if (json.is_discarded())
    return absl::DataLossError(absl::StrCat(path_, "/submission.json is damaged"));
  return job::SubmissionFromJson(json);
}

}  // namespace muster::supervise
