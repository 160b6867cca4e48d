// Caches of the jobs in a cluster and of the objects that belong to them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "controller/rules/reconcile.h"
#include "k8s/client.h"
#include "k8s/informer.h"

namespace muster::controller {

struct JobInformerOptions {
  std::string ns;  // "": all namespaces
  GangScheduler gang = GangScheduler::kNone;
  std::function<void(const std::string&)> log;
};

// Callbacks run on the informers' threads, after the cache has changed.
struct JobHandler {
  std::function<void(const Json& job)> job_added;
  std::function<void(const Json& job)> job_updated;
  std::function<void(const Json& job)> job_deleted;
  std::function<void(Kind kind, const Json& object, bool deleted)> owned_changed;
};

// One informer for each kind of job, and one for each kind of object that a job owns. Thread-safe.
class JobInformers {
 public:
  // `client` outlives this.
  JobInformers(k8s::Client& client, JobInformerOptions options, JobHandler handler);

  void Start();
  // Blocks until the caches hold all objects, or `stop` is requested, and returns OK. Returns an
  // error if a kind cannot be listed, if the CRDs of both kinds of jobs are missing, or after a
  // timeout. If the CRD of one kind is missing, its jobs appear once it is installed.
  absl::Status WaitUntilSynced(const std::stop_token& stop);
  // Returns when no callback runs or will run.
  void Stop();

  // Returns the job that a JobKey() names, or null.
  k8s::Object Job(const std::string& key) const;
  size_t JobCount() const;
  // Returns the objects of that kind with the labels of the job.
  std::vector<k8s::Object> Owned(Kind kind, const std::string& key) const;

 private:
  k8s::InformerOptions OptionsFor(const k8s::ResourceKind& kind);
  void WatchJobs(const k8s::ResourceKind& kind);
  void WatchOwned(Kind kind);
  // Makes a kind optional that the operator may not be permitted to list.
  void TolerateForbidden(const k8s::ResourceKind& kind, k8s::InformerOptions& options);
  std::vector<k8s::Informer*> All() const;

  k8s::Client& client_;
  const JobInformerOptions options_;
  const JobHandler handler_;
  absl::Mutex mutex_;
  // Errors that a retry does not fix, keyed by PathOf(kind).
  std::map<std::string, absl::Status> broken_ ABSL_GUARDED_BY(mutex_);
  // Kinds that are not installed, or optional and not permitted, keyed by PathOf(kind).
  std::map<std::string, absl::Status> missing_ ABSL_GUARDED_BY(mutex_);
  // Declared last: their threads use the members above.
  std::map<std::string, std::unique_ptr<k8s::Informer>> jobs_;  // by API group
  std::map<Kind, std::unique_ptr<k8s::Informer>> owned_;
};

}  // namespace muster::controller
