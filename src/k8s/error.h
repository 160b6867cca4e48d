// What the API server's refusals mean.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "k8s/request.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::k8s {

// What the server said; a status that ErrorOf() made carries it, also after Annotate().
struct ApiError {
  struct Cause {
    std::string field;  // "spec.containers[0].image"
    std::string message;
  };

  int code = 0;        // HTTP's
  std::string reason;  // the server's word: "Conflict"; "" when it gave none
  std::vector<Cause> causes;
  std::optional<absl::Duration> retry_after;
};

// nullopt when `status` is OK, or not from a server's answer.
std::optional<ApiError> ApiErrorOf(const absl::Status& status);

bool IsNoSuchObject(const absl::Status& status);  // the object; not that its kind is unknown
bool IsExistingObject(const absl::Status& status);
bool IsConflict(const absl::Status& status);  // it has changed since: read it again
bool IsGone(const absl::Status& status);      // that version is history: list again
bool IsForbidden(const absl::Status& status);
bool IsInvalid(const absl::Status& status);
bool IsUnknownResource(const absl::Status& status);  // no such kind here: is its CRD installed?

// The status of an answer other than 2xx. Codes: 400 and 422 InvalidArgument, 401 Unauthenticated,
// 403 PermissionDenied (with the RBAC rule that lacks), 404 NotFound or, for a kind that the server
// does not know, Unimplemented; 409 AlreadyExists or Aborted; 410 OutOfRange; 429
// ResourceExhausted; others Unavailable.
absl::Status ErrorOf(const ApiRequest& request, const net::Response& response);
// The same of a Status object, as one may also come within a watch.
absl::Status ErrorOf(const ApiRequest& request, int code, const nlohmann::json& status);

}  // namespace muster::k8s
