// Follows a job in a cluster: what happens to it, and what its tasks print.
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
#include "launch/kubernetes/log_copy.h"
#include "launch/kubernetes/pod_status.h"

namespace muster::kubernetes {

inline constexpr k8s::ResourceKind kTfJobs{"kubeflow.org", "v1", "tfjobs", "TFJob"};

// Which job, and where its output goes.
struct FollowOptions {
  k8s::ObjectKey job;
  std::string uid;   // another of that name is another job; "": not known
  std::string logs;  // a folder
  LogWriter::Options log;
  absl::Duration finish_grace;  // for tasks that go on after the job's success
};

// Pods that belong to it.
k8s::Selection PodsOf(const k8s::ObjectKey& job);

// Copies what its tasks have printed by now. False: somebody else copies it, and nothing is done.
absl::StatusOr<bool> CopyOutput(k8s::Client& client, const FollowOptions& options,
                                const std::vector<Json>& pods);

// Copies what its tasks print as they print it, until the job ends.
class Follower {
 public:
  // `client` outlives it. An error when it cannot begin.
  static absl::StatusOr<std::unique_ptr<Follower>> Start(k8s::Client& client,
                                                         FollowOptions options);
  ~Follower();

  int fd() const { return signal_.get(); }  // readable when something may have changed
  // Takes what was signalled. False: the job is over, and all of its output is here.
  bool Drain();

 private:
  // A container whose output is copied by a thread of its own.
  struct Copying {
    std::stop_source stop;
    std::jthread thread;
  };

  Follower(k8s::Client& client, FollowOptions options, EventFd signal);
  void SeenJob(const Json& job, bool gone);
  void SeenPod(const Json& pod, bool gone);
  void Work(const std::stop_token& stop, const TaskId& task);
  // The pod whose output is to be copied next; null when there is none by now.
  std::shared_ptr<const Json> Next(const TaskId& task, const LogCopy& copy) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void StartCopying(const TaskId& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WaitForLock(const std::stop_token& stop);
  void End(bool at_once);

  k8s::Client& client_;
  const FollowOptions options_;
  EventFd signal_;
  mutable absl::Mutex mutex_;
  // Of the logs; absent: somebody else copies them.
  std::optional<FileLock> lock_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, std::shared_ptr<const Json>> pods_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, Copying> copying_ ABSL_GUARDED_BY(mutex_);
  int at_work_ ABSL_GUARDED_BY(mutex_) = 0;      // threads that may have more to copy
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // it has a verdict, or is gone
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // and no task is waited for
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread ender_ ABSL_GUARDED_BY(mutex_);
  std::jthread locker_;
  std::unique_ptr<k8s::Informer> jobs_;
  std::unique_ptr<k8s::Informer> watched_pods_;
};

}  // namespace muster::kubernetes
