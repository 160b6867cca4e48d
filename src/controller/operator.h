// The operator: watches the TFJobs of a cluster and executes the plans of Reconcile().
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "controller/event_recorder.h"
#include "controller/executor.h"
#include "controller/expectations.h"
#include "controller/job_counter.h"
#include "controller/job_informers.h"
#include "controller/rules/reconcile.h"
#include "controller/spec_cache.h"
#include "controller/work_queue.h"
#include "k8s/client.h"

namespace muster::controller {

struct OperatorOptions {
  std::string ns;  // "": all namespaces
  // Number of jobs reconciled at the same time, and of threads that help to create the objects of
  // large jobs. Their sum is the limit of concurrent requests.
  int workers = 4;
  int helpers = 4;
  TfJobOptions job;
  // Client for events, so that they do not use up the rate limit of other requests. It outlives
  // the operator. Null: the same client.
  k8s::Client* events = nullptr;
  std::function<void(const std::string&)> log;
};

//   JobInformers ──> WorkQueue ──> Reconcile() ──> status ──> Executor
//        ^             (keys)        (a plan)                    │
//        └──────────────── the API server <─────────────────────┘
//
// The informers enqueue the key of a job when the job or one of its objects changes. Workers take
// keys, one worker per key at a time. Expectations bridge the time until the caches show a write.
class Operator {
 public:
  // `client` outlives the operator.
  Operator(k8s::Client& client, OperatorOptions options);

  // Reconciles jobs until `stop` is requested. Then it waits for the requests in flight and starts
  // no others, so nothing but events is written after it returns. Returns an error if the operator
  // cannot start: see JobInformers::WaitUntilSynced(). REQUIRES: called once.
  absl::Status Run(const std::stop_token& stop);

  // Returns whether the caches have synced. Thread-safe, as are the following.
  bool IsReady() const { return ready_; }
  std::map<std::string, JobCounts> Counts() const { return counter_.Counts(); }
  int waiting() const { return queue_.size(); }

 private:
  JobHandler MakeHandler();
  void Enqueue(const std::string& key);
  void OnOwnedChanged(Kind kind, const Json& object, bool deleted);
  void RunWorker();
  // Reconciles a job. Never throws.
  absl::Status TryReconcile(const std::string& key);
  absl::Status Reconcile(const std::string& key);
  // Handles an exception of Reconcile(). A job without pods becomes Failed. One with pods keeps
  // running unattended, with a warning event, and is retried.
  absl::Status HandleException(const std::string& key, const absl::Status& error);
  Observed Observe(const std::string& key, Json job);
  // Returns the newest known version of the job, or null if it no longer exists.
  Json JobOf(const std::string& key);
  // Returns whether to create the objects of a new job before its status is written. True at most
  // once per job.
  bool CreatesObjectsFirst(const std::string& key, const Observed& observed, const Plan& plan);
  absl::Status Execute(const std::string& key, const Json& job, const Plan& plan);
  // Records one event for all objects that the API server has rejected since the last call. The
  // next Reconcile() sets the job's condition.
  void RecordCreateFailures(const std::string& key, const Json& job);
  // Writes the status if it has changed, and records the plan's events.
  absl::Status Publish(const std::string& key, const Json& job, const Plan& plan);

  k8s::Client& client_;
  const OperatorOptions options_;
  std::atomic<int> busy_workers_ = 0;
  EventRecorder recorder_;
  SpecCache specs_;
  Expectations expectations_;
  JobCounter counter_;
  WorkQueue queue_{WorkQueue::Options()};
  Executor executor_;
  std::atomic<bool> ready_ = false;
  JobInformers informers_;  // declared last: its threads use the members above
};

}  // namespace muster::controller
