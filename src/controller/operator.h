// The operator: sees what happens in a cluster and does what Reconcile() says.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "controller/crew.h"
#include "controller/event_teller.h"
#include "controller/reconcile.h"
#include "controller/work_queue.h"
#include "k8s/client.h"
#include "k8s/informer.h"

namespace muster::controller {

struct OperatorOptions {
  std::string name_space;  // "": all of them
  // Jobs that are looked at at once, and who helps with those that need many objects: as many
  // requests as both together are under way at the most.
  int workers = 4;
  int helpers = 4;
  TfJobOptions job;
  // For events, so that news keep nobody from work; it outlives the operator. Null: the same one.
  k8s::Client* events = nullptr;
  std::function<void(const std::string&)> log;
};

// What has been counted since the start, by namespace.
struct JobCounts {
  int64_t created = 0;
  int64_t deleted = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t restarted = 0;
};

class Operator {
 public:
  // `client` outlives it.
  Operator(k8s::Client& client, OperatorOptions options);

  // Works until `stop` is requested; what was begun is finished. An error when it cannot begin: the
  // CRDs of both kinds of jobs are missing, or a right. With one of them it runs the jobs of that
  // kind, and those of the other once it is there.
  absl::Status Run(const std::stop_token& stop);

  // Whether it has seen all there is.
  bool IsReady() const { return ready_; }
  std::map<std::string, JobCounts> Counts() const;
  int waiting() const { return queue_.size(); }

 private:
  // What was done and has not shown in the copies yet: it is not done again.
  struct Pending {
    ObjectNames creations;
    std::set<std::string> deletions;          // uids
    Json written;                             // the job, as it was last written
    absl::Time since = absl::InfinitePast();  // the last of it; InfinitePast: nothing was done yet
  };

  const k8s::ResourceKind& ResourceOf(Kind kind) const;
  // A job's spec as it was last read: most passes find it unchanged.
  struct Parsed {
    std::string uid;
    Json generation;
    Json annotations;
    std::shared_ptr<const JobSpec> spec;
  };
  std::shared_ptr<const JobSpec> SpecOf(const std::string& key, const Json& job);

  k8s::InformerOptions Follow(const k8s::ResourceKind& kind);
  void FollowJobs(const k8s::ResourceKind& kind);
  void FollowOwned(Kind kind);
  std::vector<k8s::Informer*> All() const;
  absl::Status WaitUntilSynced(const std::stop_token& stop);
  void Work();
  void Seen(Kind kind, const Json& object, bool gone);
  void Look(const std::string& key);
  absl::Status Reconcile(const std::string& key);
  Json JobOf(const std::string& key);  // null when there is none any more
  // Whether a new job's objects are to be made now, before its status is written: once.
  bool Begins(const std::string& key, const Observed& observed, const Plan& plan);
  // What is asked for and may not show yet, looked for again in a while.
  ObjectNames UnderWay(const std::string& key);
  absl::Status WriteStatus(const std::string& key, const Json& job, const Plan& plan);
  // Carries all out, in order but for pods and services, which are made at once. The first error.
  absl::Status Carry(const std::string& key, const Json& job, const std::vector<Action>& actions);
  absl::Status Do(const std::string& key, const Json& job, const Create& create);
  absl::Status Do(const std::string& key, const Json& job, const Delete& removal);
  absl::Status Do(const std::string& key, const Json& job, const Change& change);
  absl::Status Do(const std::string& key, const Json& job, const DeleteJob& removal);
  absl::Status CheckExisting(const std::string& key, const Create& create);
  void CountVerdict(const Json& job, const Plan& plan);

  k8s::Client& client_;
  const OperatorOptions options_;
  std::atomic<int> at_work_ = 0;  // workers, on jobs
  EventTeller teller_;
  Crew crew_;
  WorkQueue queue_{WorkQueue::Options()};
  std::map<std::string, std::unique_ptr<k8s::Informer>> jobs_;  // by their API group
  std::map<Kind, std::unique_ptr<k8s::Informer>> owned_;
  std::atomic<bool> ready_ = false;
  mutable absl::Mutex mutex_;
  std::map<std::string, Pending> pending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, JobCounts> counts_ ABSL_GUARDED_BY(mutex_);
  // Why it cannot see a kind, by its path: nobody can begin so.
  std::map<std::string, absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Parsed> parsed_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> missing_ ABSL_GUARDED_BY(mutex_);  // kinds of jobs, by group
};

}  // namespace muster::controller
