#include "controller/server/admission.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "controller/catch_exceptions.h"
#include "controller/rules/tfjob.h"
#include "job/format/tfjob_format.h"

namespace muster::controller {
namespace {

std::string ManagerOf(const Json& job) { return k8s::TextAt(job, "/spec/runPolicy/managedBy"); }

// Returns the annotations that affect how a job runs. The operator's own status annotation does
// not.
std::map<std::string, Json> AnnotationsOf(const Json& job) {
  std::map<std::string, Json> found;
  for (const auto& [name, value] : ObjectAt(job, "/metadata/annotations").items()) {
    const bool relevant = absl::StartsWith(name, "muster/") && name != job::kStatusAnnotation;
    if (relevant) found.emplace(name, value);
  }
  return found;
}

bool RunsLike(const Json& job, const Json& other) {
  return ObjectAt(job, "/spec") == ObjectAt(other, "/spec") &&
         AnnotationsOf(job) == AnnotationsOf(other);
}

absl::Status Check(const Json& request, const TfJobOptions& options,
                   std::vector<std::string>& warnings) {
  const std::string operation = k8s::TextAt(request, "/operation");
  if (operation != "CREATE" && operation != "UPDATE") return absl::OkStatus();
  const Json& job = ObjectAt(request, "/object");
  const Json& before = ObjectAt(request, "/oldObject");
  // A job that is being deleted may be invalid: its finalizers must be removable.
  if (k8s::IsBeingDeleted(job)) return absl::OkStatus();
  if (operation == "UPDATE" && ManagerOf(job) != ManagerOf(before)) {
    return absl::InvalidArgumentError(
        "runPolicy.managedBy cannot be changed; delete the job and create it again");
  }
  // An invalid job that exists already may be labelled and deleted.
  if (operation == "UPDATE" && RunsLike(job, before)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(job::JobSpec spec, TfJob::ReadSpec(job, &warnings));
  return TfJob(job, std::make_shared<const job::JobSpec>(std::move(spec)), options).CheckPods();
}

}  // namespace

Json Review(const Json& review, const TfJobOptions& options) {
  const Json& request = ObjectAt(review, "/request");
  std::vector<std::string> warnings;
  const absl::Status status = CatchExceptions([&] { return Check(request, options, warnings); });
  Json response = {{"uid", k8s::TextAt(request, "/uid")}, {"allowed", status.ok()}};
  if (!status.ok()) {
    // There is no "reason": for "Invalid", kubectl shows the details instead of the message.
    response["status"] = {{"code", 422}, {"message", std::string(status.message())}};
  } else if (!warnings.empty()) {
    response["warnings"] = std::move(warnings);
  }
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"response", std::move(response)}};
}

}  // namespace muster::controller
