// The rules of the operator: from the observed state of a job to a plan. Pure and level-based: the
// result depends on the current state only, not on the events that led to it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "controller/rules/tfjob.h"
#include "k8s/informer.h"

namespace muster::controller {

enum class Kind { kPod, kService, kPodGroup, kConfigMap };
const char* KindName(Kind kind);  // "Pod"

// An object of a job.
using ObjectName = std::pair<Kind, std::string>;
using ObjectNames = std::set<ObjectName>;

// An object that the API server has rejected.
struct CreateFailure {
  int times = 0;
  absl::Time next;  // retry
  std::string message;
};
using CreateFailures = std::map<ObjectName, CreateFailure>;

// A snapshot of a job and its objects.
struct Observed {
  Json job;
  std::shared_ptr<const job::JobSpec> spec = nullptr;  // of `job`; null: not parsed yet
  // All objects with the job's labels, which need not be its own.
  std::vector<k8s::Object> pods;
  std::vector<k8s::Object> services;
  std::vector<k8s::Object> pod_groups = {};
  std::vector<k8s::Object> config_maps = {};
  ObjectNames pending_creations = {};  // requested, but perhaps not in the lists above yet
  CreateFailures create_failures = {};
};

// Creates an object, which Build() makes right before it is sent: pods are large, and a job may
// have thousands.
struct Create {
  Kind kind = Kind::kPod;
  std::string name;
  cluster::TaskId task = {};  // owner of the pod or service
  int incarnation = 0;        // of a pod: see kIncarnation
  Json object = nullptr;      // a PodGroup, which is small
};
// Deletes the object if it still has that uid.
struct Delete {
  Kind kind = Kind::kPod;
  std::string name;
  std::string uid;
  bool immediately = false;  // without a grace period: the pod's node does not respond
  std::string reason = {};   // for the event; "": none
};
// Patches an object.
struct Change {
  Kind kind = Kind::kPod;
  std::string name;
  Json patch;  // a JSON merge patch, or if `strategic` a strategic one
  // Merges lists by key, so that ownerReferences of others stay. Not for custom resources.
  bool strategic = false;
};
struct DeleteJob {};
using Action = std::variant<Create, Delete, Change, DeleteJob>;

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
};

// The status is written before the actions are executed. A restart is thus counted before its pod
// is deleted, and the outcome is stored before anything is cleaned up, so an operator that is
// killed in between reaches the same end after its restart. Only a new job, which has nothing to
// count, may get its objects first: if the job is deleted meanwhile, they are garbage-collected
// with it.
struct Plan {
  Json status;  // to be written if `status_changed`
  bool status_changed = false;
  std::vector<Event> events;
  std::vector<Action> actions;
  // When to reconcile again without an event. InfiniteFuture: never.
  absl::Time requeue_at = absl::InfiniteFuture();
};

// Returns the object to create. REQUIRES: `job` is the one that the plan was made for.
absl::StatusOr<Json> Build(const TfJob& job, const Create& create);

// Returns a plan that sets the job to Failed because of `mistakes` and leaves its objects.
Plan FailJob(const Observed& observed, const absl::Status& mistakes, absl::Time now);

// Returns the plan for the job at time `now`. Safe to call again at any time, also if the last plan
// was executed partly.
Plan Reconcile(const Observed& observed, const TfJobOptions& options, absl::Time now);

}  // namespace muster::controller
