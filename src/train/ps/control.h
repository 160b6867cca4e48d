// A control stream to one parameter server: one request at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "train/wire/transport.h"
#include "train/wire/watchdog.h"

namespace muster::train {

// The answer to STATUS.
struct PsStatus {
  bool active = false;
  uint64_t generation = 0;
  int64_t step = 0;
  int connected = 0;
  // The tasks that the next update waits for: "worker:1", "worker:2 (not connected)".
  std::vector<std::string> missing;

  nlohmann::json ToJson() const;
  static absl::StatusOr<PsStatus> FromJson(const nlohmann::json& json);
};

// Not thread-safe. After a transport error the connection is unusable; errors that the server
// returns leave it usable.
class PsControl {
 public:
  // `hello` identifies this task.
  static absl::StatusOr<std::unique_ptr<PsControl>> Connect(wire::Transport& transport,
                                                            const std::string& address,
                                                            wire::Frame hello,
                                                            absl::Duration timeout);

  // Sends a request and returns the answer, or DeadlineExceeded after `timeout`.
  absl::StatusOr<wire::Incoming> Call(wire::Outgoing request, absl::Duration timeout);
  absl::StatusOr<PsStatus> Status(absl::Duration timeout);

 private:
  explicit PsControl(std::unique_ptr<wire::Connection> connection)
      : connection_(std::move(connection)), watchdog_(*connection_) {}

  // REQUIRES: the watchdog is armed, for `timeout`.
  absl::StatusOr<wire::Incoming> Answer(absl::Duration timeout);

  std::unique_ptr<wire::Connection> connection_;
  wire::Watchdog watchdog_;
};

}  // namespace muster::train
