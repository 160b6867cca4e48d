// A request to the API server in the API's own words.
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

// How much of the objects comes back, from servers that can leave things out.
enum class Detail {
  kAll,
  kStatus,  // metadata and status, as far as encoding.h reads them: of pods; of other kinds all
  kMetadata,
};

// What may be said about any call.
struct CallOptions {
  std::string subresource;  // "status", "scale" …; "": the object itself
  bool dry_run = false;     // the server checks all, and changes nothing
  // How long it may take, repetitions included; then Unavailable.
  absl::Duration patience = absl::Minutes(1);
  std::stop_token stop;  // Cancelled, at once
  // Of a write: the object as it is now is of no interest, and null is returned.
  bool without_answer = false;
  // Of a patch: a strategic merge patch, which merges lists by their keys. Built-in kinds only.
  bool strategic_patch = false;
};

// What it points to must live until the answer is there.
struct ApiRequest {
  std::string verb = "get";  // as RBAC has it: get list watch create update patch delete
  ResourceKind kind;
  ObjectKey key;  // with the namespace; "" there: all of them, or the kind has none
  net::Headers query = {};
  absl::string_view body = {};
  std::string content_type = "application/json";
  net::BodySink* sink = nullptr;
  std::optional<absl::Duration> idle_timeout = std::nullopt;  // of an answer that goes on and on
  bool repeatable = true;  // also when it may have been carried out already
  Detail detail = Detail::kAll;
  int64_t max_answer = int64_t{128} << 20;  // of an answer without a sink; larger: OutOfRange
  CallOptions call = {};

  std::string Resource() const;  // "pods/status"
  std::string Describe() const;  // "patch pods/status 'a' in namespace 'b'"
  // "/apis/apps/v1/namespaces/b/deployments/a?x=y". InvalidArgument when it would lead elsewhere:
  // a name that is missing or no name.
  absl::StatusOr<std::string> Path() const;
};

}  // namespace muster::k8s
