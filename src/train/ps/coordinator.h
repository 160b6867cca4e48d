// The chief's control of the parameter servers: initializes them, takes snapshots for checkpoints,
// ends them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "train/core/values.h"
#include "train/ps/control.h"
#include "train/ps/generation_spec.h"
#include "train/wire/transport.h"

namespace muster::train {

// Not thread-safe. Unavailable and Aborted mean that a server was lost; EnsureActive() recovers.
class PsCoordinator {
 public:
  struct Options {
    wire::Frame hello;
    std::vector<std::string> addresses;
    std::vector<Variable> variables;
    std::vector<ShardPlan> plans;
    GenerationSpec spec;  // fields that differ by server or generation are ignored
    absl::Duration report_interval = absl::Seconds(10);
    absl::Duration call_timeout = absl::Seconds(60);  // then the server counts as lost
    std::function<void(const std::string&)> log;
  };
  PsCoordinator(wire::Transport& transport, Options options);

  // Returns OK immediately if all servers are active in one generation. Otherwise starts a new
  // generation on all of them with the values of `first`: the part of a lost server is gone, and
  // all parts must be of the same step. Returns DeadlineExceeded after `timeout`, its message
  // naming the server that is missing.
  absl::Status EnsureActive(FirstValues first, absl::Duration timeout);

  // Takes a snapshot of all servers. The snapshot has its own connections.
  absl::StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot();
  absl::Status EndAt(int64_t step);
  absl::Status EndJob();

 private:
  absl::Status ConnectAll(absl::Duration timeout);
  absl::StatusOr<std::vector<PsStatus>> StatusOfAll();
  absl::Status Start(const ValueSource& first, uint64_t generation);
  absl::StatusOr<wire::Incoming> Call(size_t server, wire::Outgoing request);
  wire::Outgoing RequestOf(wire::Frame::Kind kind) const;

  wire::Transport& transport_;
  const Options options_;
  uint64_t generation_ = 0;
  std::vector<std::unique_ptr<PsControl>> controls_;
};

}  // namespace muster::train
