#include "history/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "history/job_folder.h"
#include "history/rows.h"

namespace muster::history {
namespace {

constexpr char kLostReason[] = "history was damaged; the outcome of this job is unknown";
// The suffixes of SQLite's files beside a database.
constexpr const char* kSuffixes[] = {"", "-wal", "-shm"};

bool Exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

std::optional<FileIdentity> IdentityAt(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino};
}

absl::Status NotWritable(const std::string& path, const absl::Status& error) {
  if (absl::IsResourceExhausted(error)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the disk under ", path, " is full; free some space and try again"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is not writable: ", error.message(),
                   "; check its owner, or set MUSTER_HOME to another directory"));
}

// REQUIRES: errno is set.
absl::Status NotWritable(const std::string& path) {
  return NotWritable(path, base::DiskError(errno, path));
}

absl::Status FillNewDatabase(const std::string& path, const std::vector<JobFolder>& jobs,
                             absl::Duration busy_timeout) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path, busy_timeout));
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database));
  MUSTER_RETURN_IF_ERROR(CreateSchema(*database));
  for (const JobFolder& folder : jobs) {
    job::JobRecord job = folder.job;
    if (!job::IsFinal(job.state)) {
      job.state = job::JobState::kUnreachable;
      job.reason = kLostReason;
    }
    MUSTER_RETURN_IF_ERROR(RecoverJob(*database, job));
    MUSTER_RETURN_IF_ERROR(UpsertTasks(*database, job.id, folder.tasks));
  }
  MUSTER_RETURN_IF_ERROR(transaction.Commit());
  return database->Execute("PRAGMA journal_mode = WAL");
}

}  // namespace

HistoryFile::HistoryFile(std::string home, HistoryOptions options)
    : home_(std::move(home)),
      path_(base::JoinPath(home_, "history.db")),
      options_(std::move(options)) {}

HistoryFile::~HistoryFile() {
  // Closing may touch the files beside the path, so it holds the lock where possible, so that the
  // file is not replaced meanwhile.
  const auto lock = base::FileLock::Try(LockPath(), base::FileLock::Mode::kShared);
  database_.reset();
}

std::string HistoryFile::LockPath() const { return base::JoinPath(home_, "history.lock"); }

// Two attempts: the second runs on the file that Repair() has built, or that another process has
// built since.
absl::Status HistoryFile::Use(absl::FunctionRef<absl::Status(Database&)> work) {
  absl::Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<base::FileLock> lock,
                            Acquire(base::FileLock::Mode::kShared));
    status = IsCurrent() ? absl::OkStatus() : OpenExisting();
    if (status.ok()) status = work(*database_);
    if (!absl::IsDataLoss(status)) return status;
    // flock() does not upgrade a shared lock atomically: it releases the lock in between. Repair()
    // therefore starts without a lock and checks the file again.
    lock.reset();
    MUSTER_RETURN_IF_ERROR(Repair());
  }
  return status;
}

absl::StatusOr<base::FileLock> HistoryFile::Acquire(base::FileLock::Mode mode) {
  const base::FileLock::WaitOptions wait{.timeout = options_.busy_timeout, .mode = mode};
  auto lock = base::FileLock::Acquire(LockPath(), wait);
  // Each use of the history takes the lock, so the directory is created only if it is missing.
  if (!lock.ok() && !absl::IsUnavailable(lock.status())) {
    MUSTER_RETURN_IF_ERROR(
        base::Annotate(base::MakeDirectories(home_), "cannot create the history directory"));
    lock = base::FileLock::Acquire(LockPath(), wait);
  }
  if (lock.ok()) return lock;
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(
        absl::StrCat(LockPath(), " is locked by another process; try again in a moment"));
  }
  return NotWritable(home_, lock.status());
}

bool HistoryFile::IsCurrent() const {
  return database_ != nullptr && IdentityAt(path_) == identity_;
}

absl::Status HistoryFile::OpenExisting() {
  database_.reset();
  const std::optional<FileIdentity> identity = IdentityAt(path_);
  if (!identity && errno != ENOENT) return NotWritable(path_);
  if (!identity) return absl::DataLossError(absl::StrCat(path_, " is missing"));
  MUSTER_ASSIGN_OR_RETURN(database_, Database::Open(path_, options_.busy_timeout));
  identity_ = *identity;
  const absl::Status status = CheckSchema(*database_, path_);
  if (!status.ok()) database_.reset();
  return status;
}

absl::Status HistoryFile::Repair() {
  MUSTER_ASSIGN_OR_RETURN(const base::FileLock lock, Acquire(base::FileLock::Mode::kExclusive));
  // If the database open here is still at the path, it is the damaged one. Any other may have been
  // repaired by the previous holder of the lock.
  const bool known_damaged = IsCurrent();
  if (!known_damaged) {
    const absl::Status status = OpenExisting();
    if (!absl::IsDataLoss(status)) return status;
  }
  database_.reset();
  MUSTER_ASSIGN_OR_RETURN(const std::string damaged, MoveAside());
  MUSTER_ASSIGN_OR_RETURN(const int found, Create());
  MUSTER_RETURN_IF_ERROR(OpenExisting());
  // Without a file and without jobs this is the first start: nothing to report.
  if (options_.notice && (!damaged.empty() || found > 0)) {
    options_.notice(absl::StrCat("history.db was ",
                                 damaged.empty() ? "missing" : "damaged; moved to ", damaged, "; ",
                                 base::Plural(found, "job"), " recovered from ",
                                 found == 1 ? "its folder" : "their folders"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> HistoryFile::MoveAside() {
  const std::string stamp =
      absl::FormatTime("%Y%m%dT%H%M%SZ", options_.clock->Now(), absl::UTCTimeZone());
  const std::string first = absl::StrCat(path_, ".damaged-", stamp);
  std::string target = first;
  for (int i = 2; Exists(target); ++i) target = absl::StrCat(first, "-", i);
  const bool existed = Exists(path_);
  // Moves the database first. If this process dies half way, the next rebuild also moves the
  // leftover -wal and -shm, before SQLite could apply them to the new file.
  for (const char* suffix : kSuffixes) {
    const std::string from = absl::StrCat(path_, suffix);
    if (::rename(from.c_str(), absl::StrCat(target, suffix).c_str()) != 0 && errno != ENOENT) {
      return NotWritable(home_);
    }
  }
  return existed ? target : "";
}

absl::StatusOr<int> HistoryFile::Create() {
  const std::string fresh = absl::StrCat(path_, ".new");
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    ::unlink(absl::StrCat(fresh, suffix).c_str());
  }
  if (!base::UniqueFd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).valid()) {
    return NotWritable(home_);
  }
  const std::vector<JobFolder> jobs = ReadJobFolders(home_);
  MUSTER_RETURN_IF_ERROR(FillNewDatabase(fresh, jobs, options_.busy_timeout));
  // Other processes find either no file or the complete one.
  if (::rename(fresh.c_str(), path_.c_str()) != 0) return NotWritable(home_);
  MUSTER_RETURN_IF_ERROR(base::SyncFolder(home_));
  return static_cast<int>(jobs.size());
}

}  // namespace muster::history
