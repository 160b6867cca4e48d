// A request to the API server.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "k8s/resource.h"
#include "net/http.h"

namespace muster::k8s {

// How much of the objects the server sends, if it supports leaving parts out.
enum class Detail {
  kAll,
  kStatus,  // metadata and the status fields of encoding.h; pods only, other kinds: kAll
  kMetadata,
};

// Options of every call.
struct CallOptions {
  std::string subresource;  // "status", "scale" …; "": the object itself
  bool dry_run = false;     // the server validates the request and changes nothing
  // Limit of the whole call with all retries; then Unavailable.
  absl::Duration timeout = absl::Minutes(1);
  std::stop_token stop;  // returns Cancelled immediately
  // For a write: do not parse the response, and return null.
  bool discard_response = false;
  // For a patch: a strategic merge patch, which merges lists by key. Built-in kinds only.
  bool strategic_patch = false;
};

// Views and pointers must stay valid until the response has been received.
struct ApiRequest {
  std::string verb = "get";  // an RBAC verb: get list watch create update patch delete
  ResourceKind kind;
  ObjectKey key;  // ns "": all namespaces, or a cluster-scoped kind
  net::Headers query = {};
  absl::string_view body = {};
  std::string content_type = "application/json";
  net::BodySink* sink = nullptr;
  std::optional<absl::Duration> idle_timeout = std::nullopt;  // of a streamed response
  bool idempotent = true;  // may be retried if the server may have executed it
  Detail detail = Detail::kAll;
  int64_t max_response_bytes = int64_t{128} << 20;  // without a sink; larger: OutOfRange
  CallOptions call = {};

  std::string Resource() const;  // "pods/status"
  std::string Describe() const;  // "patch pods/status 'a' in namespace 'b'"
  // Returns "/apis/apps/v1/namespaces/b/deployments/a?x=y", or InvalidArgument if the name is
  // missing or would change the path.
  absl::StatusOr<std::string> Path() const;
};

}  // namespace muster::k8s
