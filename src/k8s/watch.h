// Streams the changes of objects.
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
  Json object;  // of a bookmark only its resourceVersion
};

struct WatchOptions {
  Selection selection;
  Detail detail = Detail::kAll;
  std::string resource_version;                // of a list or an object; events after it are sent
  absl::Duration duration = absl::Minutes(5);  // of one connection; then the server closes it
  absl::Duration idle_timeout = absl::Minutes(3);  // servers send a bookmark every minute
  int tries = 5;                                   // in a row without an event
  absl::Duration first_delay = absl::Milliseconds(200);
  absl::Duration max_delay = absl::Seconds(30);
  std::stop_token stop;
};

// Calls `handler` for each event. Reconnects after the last event when the connection ends. Blocks
// until it returns
//   a status that IsGone()   if the server no longer has the next events: list again;
//   Cancelled                if `stop` was requested;
//   the handler's error;
//   Unavailable              if reconnecting fails `tries` times;
//   DataLoss                 if the stream is malformed;
//   ResourceExhausted        if an event exceeds 16 MiB;
//   the server's error       such as a missing permission or kind.
absl::Status Watch(Client& client, const ResourceKind& kind, const WatchOptions& options,
                   const std::function<absl::Status(WatchEvent)>& handler);

}  // namespace muster::k8s
