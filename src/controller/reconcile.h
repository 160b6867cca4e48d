// What is to be done for a job: from what is there to what should be. Pure, and safe to ask twice.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "controller/tfjob.h"
#include "k8s/informer.h"

namespace muster::controller {

enum class Kind { kPod, kService, kPodGroup };
const char* WordOf(Kind kind);  // "Pod"
// Objects of a job, by their names.
using ObjectName = std::pair<Kind, std::string>;
using ObjectNames = std::set<ObjectName>;

// An object that the API server would not create.
struct Refusal {
  int times = 0;
  absl::Time next;  // when it is tried again
  std::string message;
};
using Refusals = std::map<ObjectName, Refusal>;

// All that is known of a job, at one time.
struct Observed {
  Json job;
  std::shared_ptr<const JobSpec> spec = nullptr;  // what it says, when that was read before
  std::vector<k8s::Object> pods;                  // with the job's labels
  std::vector<k8s::Object> services;              // the same
  std::vector<k8s::Object> pod_groups = {};       // the same
  ObjectNames under_way = {};  // what has been asked for and may not show yet: it is not made again
  Refusals refused = {};
};

// Pods are large, and a job may have thousands: what is to be created is built when it is sent, by
// Build().
struct Create {
  Kind kind = Kind::kPod;
  std::string name;
  TaskId task = {};       // whose pod or service it is
  int life = 0;           // of the pod, see kLife
  Json object = nullptr;  // of a pod group, which is small
};
// Of the object with that uid only: another of its name is another's.
struct Delete {
  Kind kind = Kind::kPod;
  std::string name;
  std::string uid;
  bool at_once = false;  // its node does not answer: without waiting for it
  std::string why = {};  // for who wonders; "": that is clear
};
struct Change {
  Kind kind = Kind::kPod;
  std::string name;
  Json patch;  // a JSON merge patch, unless:
  // Lists are merged by their keys, owners by their uid: none is lost. Not for custom resources.
  bool strategic = false;
};
struct DeleteJob {};
using Action = std::variant<Create, Delete, Change, DeleteJob>;

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
};

// In this order: the status is written, and only then the rest is done. What is counted is counted
// before the pod is gone, and a verdict stands before anything is cleaned up: whoever is killed in
// between and starts again comes to the same end. Only a new job, of which nothing is to be
// counted, may get its objects first: should it be gone meanwhile, they go with it.
struct Plan {
  Json status;  // as it should be
  bool status_changed = false;
  std::vector<Event> events;
  std::vector<Action> actions;
  // When time alone makes a difference: ask again then. InfiniteFuture: it does not.
  absl::Time wake = absl::InfiniteFuture();
};

// The object to create, of a job that was not changed since.
absl::StatusOr<Json> Build(const TfJob& job, const Create& create);

// The job has Failed because of `mistakes`, and stays as it is.
Plan Refuse(const Observed& observed, const absl::Status& mistakes, absl::Time now);

Plan Reconcile(const Observed& observed, const TfJobOptions& options, absl::Time now);

}  // namespace muster::controller
