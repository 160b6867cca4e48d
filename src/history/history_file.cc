#include "history/history_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "history/job_folder.h"
#include "history/rows.h"

namespace muster {
namespace {

constexpr absl::Duration kLockPoll = absl::Milliseconds(5);
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

absl::Status NotWritable(const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the disk under ", path, " is full; free some space and try again"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(path, " is not writable: ", std::strerror(error),
                   "; check its owner, or set MUSTER_HOME to another directory"));
}

absl::Status FillNewDatabase(const std::string& path, const std::vector<JobFolder>& jobs,
                             absl::Duration busy_timeout) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path, busy_timeout));
  MUSTER_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database));
  MUSTER_RETURN_IF_ERROR(CreateSchema(*database));
  for (const JobFolder& folder : jobs) {
    JobRecord job = folder.job;
    if (!IsFinal(job.state)) {
      job.state = JobState::kUnreachable;
      job.reason = kLostReason;
    }
    MUSTER_RETURN_IF_ERROR(RecoverJob(*database, job));
    MUSTER_RETURN_IF_ERROR(UpsertTasks(*database, job.id, folder.tasks));
  }
  MUSTER_RETURN_IF_ERROR(transaction.Commit());
  return database->Execute("PRAGMA journal_mode = WAL");
}

}  // namespace

// Releases history.lock when it goes out of scope.
class HistoryFile::Lock {
 public:
  explicit Lock(int fd) : fd_(fd) {}
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() { Release(); }
  void Release() {
    if (fd_ >= 0) ::flock(std::exchange(fd_, -1), LOCK_UN);
  }

 private:
  int fd_;
};

HistoryFile::HistoryFile(std::string home, HistoryOptions options)
    : home_(std::move(home)), path_(JoinPath(home_, "history.db")), options_(std::move(options)) {}

HistoryFile::~HistoryFile() {
  // Closing may touch the files beside the path, so it holds the lock where possible, lest the file
  // be replaced meanwhile.
  const bool locked = lock_file_.valid() && ::flock(lock_file_.get(), LOCK_SH | LOCK_NB) == 0;
  if (!locked || !IsCurrent()) Drop();
}

absl::Status HistoryFile::Use(absl::FunctionRef<absl::Status(Database&)> work) {
  absl::Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(Lock lock, Acquire(LockMode::kShared));
    status = IsCurrent() ? absl::OkStatus() : OpenExisting();
    if (status.ok()) status = work(*database_);
    if (!absl::IsDataLoss(status)) return status;
    lock.Release();
    MUSTER_RETURN_IF_ERROR(Repair());
  }
  return status;
}

absl::StatusOr<HistoryFile::Lock> HistoryFile::Acquire(LockMode mode) {
  const std::string path = JoinPath(home_, "history.lock");
  if (!lock_file_.valid()) {
    MUSTER_RETURN_IF_ERROR(Annotate(MakeDirectories(home_), "cannot create the history directory"));
    lock_file_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock_file_.valid()) return NotWritable(home_, errno);
  }
  const int operation = mode == LockMode::kShared ? LOCK_SH : LOCK_EX;
  absl::Duration waited;
  while (::flock(lock_file_.get(), operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return absl::ErrnoToStatus(errno, path);
    if (waited >= options_.busy_timeout) {
      return absl::UnavailableError(
          absl::StrCat(path, " is locked by another process; try again in a moment"));
    }
    absl::SleepFor(kLockPoll);
    waited += kLockPoll;
  }
  return Lock(lock_file_.get());
}

bool HistoryFile::IsCurrent() const {
  return database_ != nullptr && IdentityAt(path_) == identity_;
}

absl::Status HistoryFile::OpenExisting() {
  Drop();
  const std::optional<FileIdentity> identity = IdentityAt(path_);
  if (!identity && errno != ENOENT) return NotWritable(path_, errno);
  if (!identity) return absl::DataLossError(absl::StrCat(path_, " is missing"));
  MUSTER_ASSIGN_OR_RETURN(database_, Database::Open(path_, options_.busy_timeout));
  identity_ = *identity;
  const absl::Status status = CheckSchema(*database_, path_);
  if (!status.ok()) Drop();
  return status;
}

void HistoryFile::Drop() { database_.reset(); }

absl::Status HistoryFile::Repair() {
  MUSTER_ASSIGN_OR_RETURN(Lock lock, Acquire(LockMode::kExclusive));
  // If the database open here is still at the path, it is the damaged one. Any other may have been
  // repaired by the previous holder of the lock.
  const bool known_damaged = IsCurrent();
  if (!known_damaged) {
    const absl::Status status = OpenExisting();
    if (!absl::IsDataLoss(status)) return status;
  }
  Drop();
  MUSTER_ASSIGN_OR_RETURN(const std::string damaged, MoveAside());
  MUSTER_ASSIGN_OR_RETURN(const int found, Create());
  MUSTER_RETURN_IF_ERROR(OpenExisting());
  // Without a file and without jobs this is the first start: nothing to report.
  if (options_.notice && (!damaged.empty() || found > 0)) {
    options_.notice(absl::StrCat(
        "history.db was ", damaged.empty() ? "missing" : "damaged; moved to ", damaged, "; ",
        Plural(found, "job"), " recovered from ", found == 1 ? "its folder" : "their folders"));
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
      return NotWritable(home_, errno);
    }
  }
  return existed ? target : "";
}

absl::StatusOr<int> HistoryFile::Create() {
  const std::string fresh = absl::StrCat(path_, ".new");
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    ::unlink(absl::StrCat(fresh, suffix).c_str());
  }
  if (!UniqueFd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).valid()) {
    return NotWritable(home_, errno);
  }
  const std::vector<JobFolder> jobs = ReadJobFolders(home_);
  MUSTER_RETURN_IF_ERROR(FillNewDatabase(fresh, jobs, options_.busy_timeout));
  if (::rename(fresh.c_str(), path_.c_str()) != 0) return NotWritable(home_, errno);
  MUSTER_RETURN_IF_ERROR(SyncFolder(home_));
  return static_cast<int>(jobs.size());
}

}  // namespace muster
