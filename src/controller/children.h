// The pods and services that belong to a job, each in the slot of its task.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/task_id.h"
#include "controller/tfjob.h"
#include "k8s/informer.h"

namespace muster::controller {

enum class Phase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// A pod or a service of a job.
struct Child {
  const Json* object = nullptr;
  std::string name() const { return k8s::NameOf(*object); }
  std::string uid() const { return k8s::UidOf(*object); }
  bool deleting() const { return k8s::IsBeingDeleted(*object); }
  // When it should have gone by itself; InfiniteFuture when nobody deletes it.
  absl::Time gone_by() const;
  // "" when it has no such annotation.
  std::string annotation(const std::string& name) const { return k8s::AnnotationOf(*object, name); }

  // Of a pod:
  Phase phase() const;
  bool ready() const;  // as its probes say
  bool active() const { return !deleting() && phase() == Phase::kRunning; }
  // How it ended, where that counts: see kubernetes::IsJudged().
  bool succeeded() const { return phase() == Phase::kSucceeded && judged(); }
  bool failed() const { return phase() == Phase::kFailed && judged(); }
  // Why the cluster took it away; nullopt when it did not. See kubernetes::WhyLost().
  std::optional<std::string> why_lost() const;
  std::string disruption() const;  // see kubernetes::Disruption()
  // Of the container whose exit code counts, or of the pod when it never ran; nullopt when it is
  // not known.
  std::optional<int> exit_code() const;
  std::string reason() const;  // "OOMKilled", "Evicted"; "" when there is none
  int restarts() const;        // of its containers, in place; 0 while it is being deleted

 private:
  bool judged() const;
};

// By the label of the role and the index; those without a proper one are not in it.
using Slots = std::map<TaskId, Child>;

struct Claims {
  Slots slots;
  std::vector<Child> orphans;  // have the job's labels and no owner: to be adopted
  std::vector<Child> foreign;  // have them, and another owner: to be left alone
};

// What of `objects`, all of the job's labels, is its own. What another owns is left alone.
Claims Claim(const TfJob& job, const std::vector<k8s::Object>& objects);

}  // namespace muster::controller
