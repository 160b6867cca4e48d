// Follows a job in a cluster: watches its state and copies the output of its tasks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/event_fd.h"
#include "base/files/file_lock.h"
#include "k8s/client.h"
#include "k8s/informer.h"
#include "manifest/pod_status.h"
#include "platform/kubernetes/log_copy.h"
#include "platform/kubernetes/target.h"

namespace muster::kubernetes {

// The job to follow and the destination of its output.
struct FollowOptions {
  k8s::ObjectKey job;
  std::string uid;   // identifies the job among others of its name; "" if unknown
  std::string logs;  // directory of the logs
  supervise::LogWriter::Options log;
  // Time for which tasks may keep running after the job has succeeded.
  absl::Duration finish_grace;
};

// Selects the pods of a job.
k8s::Selection PodsOf(const k8s::ObjectKey& job);

// Copies the output that the tasks have produced so far. Returns false, without copying, if another
// copier holds the lock of the logs.
absl::StatusOr<bool> CopyOutput(k8s::Client& client, const FollowOptions& options,
                                const std::vector<Json>& pods);

// Copies the output of the tasks as it is produced, until the job ends. Public methods are called
// from one thread.
class Follower {
 public:
  // `client` must outlive the result. Returns Unavailable if the cluster does not respond.
  static absl::StatusOr<std::unique_ptr<Follower>> Start(k8s::Client& client,
                                                         FollowOptions options);
  ~Follower();

  // Readable when the job may have changed.
  int fd() const { return signal_.get(); }
  // Clears the pending notification. Returns false when the job has ended and all of its output is
  // copied.
  bool Drain();

 private:
  // A thread that copies the output of one task.
  struct Copying {
    std::stop_source stop;
    std::jthread thread;
  };

  Follower(k8s::Client& client, FollowOptions options, base::EventFd signal);
  // Informer callbacks.
  void OnJobEvent(const Json& job, bool gone);
  void OnPodEvent(const Json& pod, bool gone);
  // Body of a copying thread: copies one run of the container after another.
  void Work(const std::stop_token& stop, const cluster::TaskId& task);
  // Returns the pod to copy from next, or null if there is none at present.
  std::shared_ptr<const Json> Next(const cluster::TaskId& task, const LogCopy& copy) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void StartCopying(const cluster::TaskId& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Body of lock_waiter_: acquires the lock once its present holder releases it, then starts
  // copying.
  void WaitForLock(const std::stop_token& stop);
  // Body of finisher_: waits for the remaining tasks (not if `immediately`), then stops the
  // copying.
  void End(bool immediately);

  k8s::Client& client_;
  const FollowOptions options_;
  base::EventFd signal_;
  mutable absl::Mutex mutex_;
  // Lock of the logs; nullopt while another copier (in any process) holds it.
  std::optional<base::FileLock> lock_ ABSL_GUARDED_BY(mutex_);
  std::map<cluster::TaskId, std::shared_ptr<const Json>> pods_ ABSL_GUARDED_BY(mutex_);
  std::map<cluster::TaskId, Copying> copying_ ABSL_GUARDED_BY(mutex_);
  int active_copies_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that may have more to copy
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;    // the job has a verdict, or is gone
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;     // ending_, and no task is waited for
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread finisher_ ABSL_GUARDED_BY(mutex_);
  std::jthread lock_waiter_;
  std::unique_ptr<k8s::Informer> jobs_;
  std::unique_ptr<k8s::Informer> watched_pods_;
};

}  // namespace muster::kubernetes
