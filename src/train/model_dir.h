// Where a run keeps what it makes: checkpoints, summaries, evaluations, exports.
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
#include "base/file_lock.h"
#include "checkpoint/remote.h"
#include "checkpoint/store.h"
#include "storage/storage.h"
#include "train/environment.h"

namespace muster::train {

// A folder of this machine; or one of another storage, which a process works on through a folder
// of its own on this machine: what it needs is fetched, what it makes is sent. Thread-safe.
class ModelDir {
 public:
  using Log = std::function<void(const std::string&)>;

  // `place`: a path or a URL; "": nothing is kept. `environment` says whose it is.
  static absl::StatusOr<std::unique_ptr<ModelDir>> Open(const std::string& place,
                                                        const Environment& environment, Log log);
  // The working folder of a URL is removed, unless it holds what could not be sent.
  ~ModelDir();

  const std::string& place() const { return place_; }    // as the user calls it
  const std::string& folder() const { return folder_; }  // on this machine

  // For the chief: nobody else trains here. FailedPrecondition when somebody does. Not of a URL:
  // storages have no locks.
  absl::Status ClaimForTraining();
  // Makes sure that a checkpoint, the newest or that of a step, is in folder(), if there is one.
  // Before the newest is fetched, what an earlier run could not send is sent.
  absl::Status Fetch(std::optional<int64_t> step);
  // The same for a word of the user's: a step, best or latest.
  absl::Status FetchWhich(const std::string& which);
  // The newest checkpoint there is in folder(), and none that is not there. Worth asking once in
  // poll_interval.
  absl::Status Follow();
  absl::Duration poll_interval() const;
  // Checkpoints before `step` are not needed in the working folder of a URL any more.
  void Forget(int64_t step);
  // For a run that goes on from `step`, once: later checkpoints are set aside. 0: it starts anew,
  // and all that an earlier run has left is.
  absl::Status ResumeFrom(int64_t step);

  // What is known of the newest checkpoint. NotFound when there is none.
  struct Last {
    int64_t step = 0;
    bool final = false;
    nlohmann::json state;

    std::string job() const { return checkpoint::JobOf(state); }  // that saved it; "": not known
  };
  absl::StatusOr<Last> Newest();

  // `checkpoint` is complete in folder(): sends it, and removes all but the newest `keep` and the
  // best. Not being able to remove is only said.
  absl::Status Publish(const std::string& checkpoint, int keep);
  // Sends everything else that has changed.
  absl::Status SendRest();

 private:
  ModelDir(std::string place, std::string folder, const Environment& environment, Log log);
  bool is_remote() const { return remote_ != nullptr; }
  absl::Status MakeRemote(const storage::Url& url);
  absl::Status FetchNewest(const std::vector<int64_t>& steps);
  // What an earlier run could not send is newer than what is there: sends it.
  absl::Status KeepUnsent(const std::vector<int64_t>& steps);
  // Brings one file, if it is there.
  absl::Status FetchFile(const std::string& name);
  absl::Status SetAside(int64_t after_step);
  absl::Status SetRunAside();
  std::optional<std::pair<int64_t, int64_t>> StampOf(const std::string& name) const;

  const std::string place_;
  const std::string folder_;
  const Environment& environment_;
  const Log log_;
  std::optional<FileLock> lock_;

  storage::Storage storage_;
  storage::Url url_;
  std::unique_ptr<checkpoint::RemoteStore> remote_;
  // Something may be in the folder alone: of checkpoints, and of the rest.
  std::atomic<bool> unsent_ = false;
  std::atomic<bool> rest_unsent_ = false;
  std::set<int64_t> skipped_;  // damaged ones that were said
  absl::Mutex mutex_;
  // Files that are there as they are here: size and time.
  std::map<std::string, std::pair<int64_t, int64_t>> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
