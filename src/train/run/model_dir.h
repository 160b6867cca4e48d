// The model dir of a run: its checkpoints, summaries, evaluations and exports.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file_lock.h"
#include "checkpoint/remote.h"
#include "checkpoint/store.h"
#include "storage/storage.h"
#include "train/run/environment.h"

namespace muster::train {

// A folder on this machine, or a URL. For a URL each process has its own working folder on this
// machine: it fetches the files it needs and sends the files it writes. Thread-safe.
class ModelDir {
 public:
  using Log = std::function<void(const std::string&)>;

  // `place`: a path or a URL; "": nothing is stored. `environment` identifies the task and must
  // outlive this object.
  static absl::StatusOr<std::unique_ptr<ModelDir>> Open(const std::string& place,
                                                        const Environment& environment, Log log);
  // Removes the working folder of a URL, unless it holds files that could not be sent.
  ~ModelDir();

  const std::string& place() const { return place_; }    // as the user wrote it
  const std::string& folder() const { return folder_; }  // on this machine

  // Takes the exclusive right to train here, for the chief. Returns FailedPrecondition if another
  // process holds it. A no-op for a URL: storages have no locks.
  absl::Status ClaimForTraining();
  // Fetches a checkpoint, of `step` or the newest, to folder(). OK if there is none and `step` is
  // absent. Before fetching the newest, sends checkpoints that an earlier run could not send.
  absl::Status Fetch(std::optional<int64_t> step);
  // The same for the user's choice: a step, "best" or "latest".
  absl::Status FetchWhich(const std::string& which);
  // Synchronizes folder() with the storage: fetches the newest checkpoint, removes those that no
  // longer exist there. Call it at most once per poll_interval().
  absl::Status Follow();
  absl::Duration poll_interval() const;
  // Removes checkpoints before `step` from the working folder of a URL.
  void Forget(int64_t step);
  // Prepares to resume from `step`: moves later checkpoints aside. `step` 0 starts fresh: moves the
  // whole earlier run aside. Idempotent for the attempts of a job.
  absl::Status ResumeFrom(int64_t step);

  // The newest checkpoint's metadata.
  struct Last {
    int64_t step = 0;
    bool final = false;
    nlohmann::json state;

    std::string job() const { return checkpoint::JobOf(state); }  // that saved it; "": unknown
  };
  // Returns NotFound if there is no checkpoint.
  absl::StatusOr<Last> Newest();

  // Sends `checkpoint` and removes all but the newest `keep` and the best. Only logs if removing
  // fails. REQUIRES: `checkpoint` is complete in folder().
  absl::Status Publish(const std::string& checkpoint, int keep);
  // Sends all other files that have changed.
  absl::Status SendRest();

 private:
  ModelDir(std::string place, std::string folder, const Environment& environment, Log log);
  bool is_remote() const { return remote_ != nullptr; }
  absl::Status MakeRemote(const storage::Url& url);
  absl::Status FetchNewest(const std::vector<int64_t>& steps);
  // Sends checkpoints of an earlier run that are newer than `steps`.
  absl::Status KeepUnsent(const std::vector<int64_t>& steps);
  // Fetches one file, if it exists.
  absl::Status FetchFile(const std::string& name);
  absl::Status SetAside(int64_t after_step);
  absl::Status SetRunAside();
  std::optional<std::pair<int64_t, int64_t>> StampOf(const std::string& name) const;

  const std::string place_;
  const std::string folder_;
  const Environment& environment_;
  const Log log_;
  std::optional<base::FileLock> lock_;

  storage::Storage storage_;
  storage::Url url_;
  std::unique_ptr<checkpoint::RemoteStore> remote_;
  // True if the folder may hold checkpoints, or other files, that were not sent.
  std::atomic<bool> unsent_ = false;
  std::atomic<bool> rest_unsent_ = false;
  std::set<int64_t> skipped_;  // damaged checkpoints that were logged
  absl::Mutex mutex_;
  // Files that are equal in the storage: their size and modification time here.
  std::map<std::string, std::pair<int64_t, int64_t>> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
