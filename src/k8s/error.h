// Errors of the API server.
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

// The server's error. It is a payload of the status that ErrorOf() returns, also after Annotate().
struct ApiError {
  struct Cause {
    std::string field;  // "spec.containers[0].image"
    std::string message;
  };

  int code = 0;        // HTTP status
  std::string reason;  // "Conflict"; "": none
  std::vector<Cause> causes;
  std::optional<absl::Duration> retry_after;
};

// Returns nullopt if `status` is OK or is not from a response of the server.
std::optional<ApiError> ApiErrorOf(const absl::Status& status);

bool IsNoSuchObject(const absl::Status& status);  // the object, as opposed to its kind
bool IsExistingObject(const absl::Status& status);
bool IsConflict(const absl::Status& status);  // the object has changed: read it again
bool IsGone(const absl::Status& status);      // the resourceVersion is too old: list again
bool IsForbidden(const absl::Status& status);
bool IsInvalid(const absl::Status& status);
bool IsUnknownResource(const absl::Status& status);  // the kind: its CRD is not installed

// Converts a response other than 2xx. 400 and 422 are InvalidArgument, 401 Unauthenticated, 403
// PermissionDenied (with the missing RBAC rule), 404 NotFound or, for an unknown kind,
// Unimplemented; 409 AlreadyExists or Aborted; 410 OutOfRange; 429 ResourceExhausted; others
// Unavailable.
absl::Status ErrorOf(const ApiRequest& request, const net::Response& response);
// The same for a Status object, which may also arrive as a watch event.
absl::Status ErrorOf(const ApiRequest& request, int code, const nlohmann::json& status);

}  // namespace muster::k8s
