// The chief's rule over the parameter servers: it gives them their values, copies them for
// checkpoints, and ends them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "train/ps/control.h"
#include "train/ps/generation_spec.h"
#include "train/values.h"
#include "train/wire/transport.h"

namespace muster::train {

// One thread. Unavailable, Aborted: a server was lost; EnsureActive mends it.
class PsCoordinator {
 public:
  struct Options {
    wire::Frame hello;
    std::vector<std::string> addresses;
    std::vector<Variable> variables;
    std::vector<ShardPlan> plans;
    GenerationSpec spec;  // without what differs by server and generation
    absl::Duration report_interval = absl::Seconds(10);
    absl::Duration call_timeout = absl::Seconds(60);  // a server that does not answer is lost then
    std::function<void(const std::string&)> log;
  };
  PsCoordinator(wire::Transport& transport, Options options);

  // When all servers hold values of one generation, nothing. Otherwise all of them begin anew with
  // the values of `first`: what a lost server knew is gone, and they must fit together.
  // DeadlineExceeded after `timeout`, with who is missing as its message.
  absl::Status EnsureActive(FirstValues first, absl::Duration timeout);

  // Copies what the servers hold now. The snapshot is read through connections of its own.
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
