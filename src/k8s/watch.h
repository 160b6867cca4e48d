// Follows what happens to objects.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "k8s/client.h"

namespace muster::k8s {

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark };
  Type type = Type::kBookmark;
  Json object;  // of a bookmark nothing but its resourceVersion
};

struct WatchOptions {
  Selection selection;
  Detail detail = Detail::kAll;
  std::string resource_version;  // of a list or an object: what comes after it is told
  absl::Duration duration = absl::Minutes(5);      // of one connection; the server ends it then
  absl::Duration idle_timeout = absl::Minutes(3);  // a server sends a bookmark each minute
  int tries = 5;                                   // in a row that lead nowhere
  absl::Duration first_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(30);
  std::stop_token stop;
};

// Calls `handler` for each event, and goes on after the last one when the server ends the
// connection or it is lost. Returns with
//   a status that IsGone()   what happened meanwhile is not known any more: list again;
//   Cancelled                `stop` was requested;
//   the handler's own error;
//   Unavailable              the server does not come back;
//   DataLoss                 what comes are no events; ResourceExhausted: one is over 16 MiB;
//   what a refusal means     no permission, no such kind.
// Blocks.
absl::Status Watch(Client& client, const ResourceKind& kind, const WatchOptions& options,
                   const std::function<absl::Status(WatchEvent)>& handler);

}  // namespace muster::k8s
