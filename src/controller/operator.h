// The operator: sees what happens in a cluster and does what Reconcile() says.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "controller/crew.h"
#include "controller/event_teller.h"
#include "controller/expectations.h"
#include "controller/job_counter.h"
#include "controller/reconcile.h"
#include "controller/spec_cache.h"
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

class Operator {
 public:
  // `client` outlives it.
  Operator(k8s::Client& client, OperatorOptions options);

  // Works until `stop` is requested; requests that were sent are answered, and nothing else is
  // begun: it returns when nothing is written any more, except events. An error when it cannot
  // begin: the CRDs of both kinds of jobs are missing, or a right. With one of them it runs the
  // jobs of that kind, and those of the other once it is there.
  absl::Status Run(const std::stop_token& stop);

  // Whether it has seen all there is.
  bool IsReady() const { return ready_; }
  std::map<std::string, JobCounts> Counts() const { return counter_.Counts(); }
  int waiting() const { return queue_.size(); }

 private:
  const k8s::ResourceKind& ResourceOf(Kind kind) const;
  k8s::InformerOptions Follow(const k8s::ResourceKind& kind);
  void FollowJobs(const k8s::ResourceKind& kind);
  void FollowOwned(Kind kind);
  std::vector<k8s::Informer*> All() const;
  absl::Status WaitUntilSynced(const std::stop_token& stop);
  void Work();
  void Seen(Kind kind, const Json& object, bool gone);
  void Look(const std::string& key);
  // One pass over a job; no exception leaves it.
  absl::Status TryPass(const std::string& key);
  absl::Status Reconcile(const std::string& key);
  // A pass has thrown: a job that has no pods is Failed; one that has goes on unattended, and is
  // looked at again and again.
  absl::Status GiveUp(const std::string& key, const absl::Status& why);
  Observed Observe(const std::string& key, Json job);
  Json JobOf(const std::string& key);  // null when there is none any more
  // Whether a new job's objects are to be made now, before its status is written: once.
  bool Begins(const std::string& key, const Observed& observed, const Plan& plan);
  // One event for all that were refused in this pass; the next pass sets the job's condition.
  void TellRefusals(const std::string& key, const Json& job);
  // Writes the status, if it has changed, and records the events.
  absl::Status Publish(const std::string& key, const Json& job, const Plan& plan);
  // Carries all out, in order but for pods and services, which are made at once; each is built
  // when its turn comes. The first error; Cancelled when the operator stops before all is done.
  absl::Status Carry(const std::string& key, const Json& job, const std::vector<Action>& actions);
  absl::Status Do(const std::string& key, const TfJob& job, const Create& create);
  absl::Status Do(const std::string& key, const Json& job, const Delete& removal);
  absl::Status Do(const std::string& key, const Json& job, const Change& change);
  absl::Status Do(const std::string& key, const Json& job, const DeleteJob& removal);
  absl::Status CheckExisting(const std::string& key, const k8s::ObjectKey& object, Kind kind);

  k8s::Client& client_;
  const OperatorOptions options_;
  std::atomic<int> at_work_ = 0;  // workers, on jobs
  EventTeller teller_;
  Crew crew_;
  SpecCache specs_;
  Expectations expected_;
  JobCounter counter_;
  WorkQueue queue_{WorkQueue::Options()};
  std::map<std::string, std::unique_ptr<k8s::Informer>> jobs_;  // by their API group
  std::map<Kind, std::unique_ptr<k8s::Informer>> owned_;
  std::atomic<bool> ready_ = false;
  std::atomic<bool> stopping_ = false;
  mutable absl::Mutex mutex_;
  // Why it cannot see a kind, by its path: nobody can begin so.
  std::map<std::string, absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Status> missing_ ABSL_GUARDED_BY(mutex_);  // kinds of jobs, by group
};

}  // namespace muster::controller
