#include "controller/admission.h"

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "controller/admission_warnings.h"
#include "controller/tfjob.h"

namespace muster::controller {
namespace {

std::string ManagerOf(const Json& job) { return k8s::TextAt(job, "/spec/runPolicy/managedBy"); }

// All that says how a job runs: its spec, and the annotations that the operator reads.
std::map<std::string, Json> MeaningOf(const Json& job) {
  std::map<std::string, Json> meaning = {{"spec", ObjectAt(job, "/spec")}};
  const Json& annotations = ObjectAt(job, "/metadata/annotations");
  if (!annotations.is_object()) return meaning;
  for (const auto& [name, value] : annotations.items()) {
    if (absl::StartsWith(name, "muster/")) meaning.emplace(name, value);
  }
  return meaning;
}

absl::Status Check(const Json& request) {
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
  if (operation == "UPDATE" && MeaningOf(job) == MeaningOf(before)) {
    return absl::OkStatus();
  }
  return TfJob::ReadSpec(job).status();
}

}  // namespace

Json Review(const Json& review) {
  const Json& request = ObjectAt(review, "/request");
  const absl::Status status = Check(request);
  Json response = {{"uid", k8s::TextAt(request, "/uid")}, {"allowed", status.ok()}};
  if (!status.ok()) {
    // Of what has the reason "Invalid" kubectl shows the details, and not the message.
    response["status"] = {{"code", 422}, {"message", std::string(status.message())}};
  } else if (auto warnings = WarningsOf(ObjectAt(request, "/object")); !warnings.empty()) {
    response["warnings"] = std::move(warnings);
  }
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"response", std::move(response)}};
}

}  // namespace muster::controller
