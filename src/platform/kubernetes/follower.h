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
#include "base/file_lock.h"
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
  LogWriter::Options log;
  // Time that tasks may run on after the job has succeeded.
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
  // `client` must outlive the result. Returns Unavailable if the cluster does not answer.
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

  Follower(k8s::Client& client, FollowOptions options, EventFd signal);
  // Informer callbacks.
  void SeenJob(const Json& job, bool gone);
  void SeenPod(const Json& pod, bool gone);
  // Body of a copying thread: copies one run of the container after another.
  void Work(const std::stop_token& stop, const TaskId& task);
  // Returns the pod to copy from next, or null if there is none at present.
  std::shared_ptr<const Json> Next(const TaskId& task, const LogCopy& copy) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void StartCopying(const TaskId& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Body of locker_: acquires the lock once its present holder releases it, then starts copying.
  void WaitForLock(const std::stop_token& stop);
  // Body of ender_: waits for the remaining tasks (not if `immediately`), then stops the copying.
  void End(bool immediately);

  k8s::Client& client_;
  const FollowOptions options_;
  EventFd signal_;
  mutable absl::Mutex mutex_;
  // Lock of the logs; nullopt while another copier (in any process) holds it.
  std::optional<FileLock> lock_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, std::shared_ptr<const Json>> pods_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, Copying> copying_ ABSL_GUARDED_BY(mutex_);
  int at_work_ ABSL_GUARDED_BY(mutex_) = 0;      // threads that may have more to copy
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // the job has a verdict, or is gone
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // ending_, and no task is waited for
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread ender_ ABSL_GUARDED_BY(mutex_);
  std::jthread locker_;
  std::unique_ptr<k8s::Informer> jobs_;
  std::unique_ptr<k8s::Informer> watched_pods_;
};

}  // namespace muster::kubernetes
