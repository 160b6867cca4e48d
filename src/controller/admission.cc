#include "controller/admission.h"

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "controller/tfjob.h"

namespace muster::controller {
namespace {

// What stands there; null when nothing does.
const Json& At(const Json& object, absl::string_view path) {
  static const auto& kNothing = *new Json();
  const Json* found = k8s::Find(object, path);
  return found == nullptr ? kNothing : *found;
}

std::string ManagerOf(const Json& job) { return k8s::TextAt(job, "/spec/runPolicy/managedBy"); }

// All that says how a job runs: its spec, and the annotations that the operator reads.
std::map<std::string, Json> MeaningOf(const Json& job) {
  std::map<std::string, Json> meaning = {{"spec", At(job, "/spec")}};
  const Json& annotations = At(job, "/metadata/annotations");
  if (!annotations.is_object()) return meaning;
  for (const auto& [name, value] : annotations.items()) {
    if (absl::StartsWith(name, "muster/")) meaning.emplace(name, value);
  }
  return meaning;
}

absl::Status Check(const Json& request) {
  const std::string operation = k8s::TextAt(request, "/operation");
  if (operation != "CREATE" && operation != "UPDATE") return absl::OkStatus();
  const Json& job = At(request, "/object");
  const Json& before = At(request, "/oldObject");
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
  return TfJob::Parse(job, {}).status();
}

}  // namespace

Json Review(const Json& review) {
  const Json& request = At(review, "/request");
  const absl::Status status = Check(request);
  Json response = {{"uid", k8s::TextAt(request, "/uid")}, {"allowed", status.ok()}};
  if (!status.ok()) {
    response["status"] = {
        {"code", 422}, {"reason", "Invalid"}, {"message", std::string(status.message())}};
  }
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"response", std::move(response)}};
}

}  // namespace muster::controller
