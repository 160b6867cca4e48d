#include "controller/admission.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "controller/guard.h"
#include "controller/tfjob.h"
#include "job/tfjob_format.h"

namespace muster::controller {
namespace {

std::string ManagerOf(const Json& job) { return k8s::TextAt(job, "/spec/runPolicy/managedBy"); }

// The annotations that say how a job runs. The operator's own, of the status, does not.
std::map<std::string, Json> AnnotationsOf(const Json& job) {
  std::map<std::string, Json> found;
  for (const auto& [name, value] : ObjectAt(job, "/metadata/annotations").items()) {
    const bool says = absl::StartsWith(name, "muster/") && name != kStatusAnnotation;
    if (says) found.emplace(name, value);
  }
  return found;
}

bool RunsAs(const Json& job, const Json& other) {
  return ObjectAt(job, "/spec") == ObjectAt(other, "/spec") &&
         AnnotationsOf(job) == AnnotationsOf(other);
}

absl::Status Check(const Json& request, const TfJobOptions& options,
                   std::vector<std::string>& warnings) {
  const std::string operation = k8s::TextAt(request, "/operation");
  if (operation != "CREATE" && operation != "UPDATE") return absl::OkStatus();
  const Json& job = ObjectAt(request, "/object");
  const Json& before = ObjectAt(request, "/oldObject");
  // What is going needs no right spec any more: else its finalizers could not be taken off.
  if (k8s::IsBeingDeleted(job)) return absl::OkStatus();
  if (operation == "UPDATE" && ManagerOf(job) != ManagerOf(before)) {
    return absl::InvalidArgumentError(
        "runPolicy.managedBy cannot be changed; delete the job and create it anew");
  }
  // One that was there with mistakes before can be labelled, and deleted.
  if (operation == "UPDATE" && RunsAs(job, before)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(JobSpec spec, TfJob::ReadSpec(job, &warnings));
  return TfJob(job, std::make_shared<const JobSpec>(std::move(spec)), options).CheckPods();
}

}  // namespace

Json Review(const Json& review, const TfJobOptions& options) {
  const Json& request = ObjectAt(review, "/request");
  std::vector<std::string> warnings;
  const absl::Status status = Guarded([&] { return Check(request, options, warnings); });
  Json response = {{"uid", k8s::TextAt(request, "/uid")}, {"allowed", status.ok()}};
  if (!status.ok()) {
    // Of what has the reason "Invalid" kubectl shows the details, and not the message.
    response["status"] = {{"code", 422}, {"message", std::string(status.message())}};
  } else if (!warnings.empty()) {
    response["warnings"] = std::move(warnings);
  }
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"response", std::move(response)}};
}

}  // namespace muster::controller
