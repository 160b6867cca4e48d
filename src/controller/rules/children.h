// The pods and services that belong to a job, each by its task.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/task_id.h"
#include "controller/rules/tfjob.h"
#include "k8s/informer.h"

namespace muster::controller {

enum class Phase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// A pod or a service of a job.
struct Child {
  const Json* object = nullptr;
  std::string name() const { return k8s::NameOf(*object); }
  std::string uid() const { return k8s::UidOf(*object); }
  bool deleting() const { return k8s::IsBeingDeleted(*object); }
  // When the object should be gone; InfiniteFuture unless it is being deleted.
  absl::Time deletion_deadline() const;
  // Returns "" if there is no such annotation.
  std::string annotation(const std::string& name) const { return k8s::AnnotationOf(*object, name); }

  // The following are for pods.
  Phase phase() const;
  bool ready() const;  // the Ready condition
  bool active() const { return !deleting() && phase() == Phase::kRunning; }
  // The outcome, if it counts: see manifest::OutcomeCounts().
  bool succeeded() const { return phase() == Phase::kSucceeded && outcome_counts(); }
  bool failed() const { return phase() == Phase::kFailed && outcome_counts(); }
  // Why the pod was lost; nullopt if it was not. See manifest::WhyLost().
  std::optional<std::string> why_lost() const;
  std::string disruption() const;  // see manifest::Disruption()
  // The exit code of the container `tensorflow`; nullopt if it is unknown.
  std::optional<int> exit_code() const;
  std::string reason() const;  // "OOMKilled", "Evicted"; "": none
  int restarts() const;        // of containers in place; 0 while the pod is being deleted

 private:
  bool outcome_counts() const;
};

// Objects by the labels of their role and index. Objects with invalid labels are left out.
using Slots = std::map<cluster::TaskId, Child>;

struct Claims {
  Slots slots;
  std::vector<Child> orphans;  // with the job's labels and no controller: to be adopted
  std::vector<Child> foreign;  // with the job's labels and another controller: never changed
};

// Sorts `objects`, which all have the job's labels, by their owner.
Claims Claim(const TfJob& job, const std::vector<k8s::Object>& objects);

}  // namespace muster::controller
