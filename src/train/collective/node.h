// A task's place in an all-reduce between machines: it listens at its address for the others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cluster/task_id.h"
#include "train/collective/key_value.h"
#include "train/collective/relay.h"
#include "train/wire/admission.h"
#include "train/wire/transport.h"

namespace muster::train {

class CollectiveNode {
 public:
  struct Options {
    int rank = 0;
    std::vector<TaskId> tasks;           // by rank
    std::vector<std::string> addresses;  // by rank
    wire::Frame hello;                   // introduces this task
    std::string cluster;                 // every task must have the same
    std::function<void(const std::string&)> log;
  };
  // Listens. Errors as of Transport::Listen. `transport` must outlive it.
  static absl::StatusOr<std::unique_ptr<CollectiveNode>> Start(wire::Transport& transport,
                                                               Options options);
  // REQUIRES: Gloo's connections are closed. Waits up to 3 s until the peers have received what was
  // sent.
  ~CollectiveNode();
  CollectiveNode(const CollectiveNode&) = delete;
  CollectiveNode& operator=(const CollectiveNode&) = delete;

  Relay& relay() { return *relay_; }
  // Rank 0's. Unavailable when it does not answer in time; other errors are final.
  absl::StatusOr<std::shared_ptr<KeyValue>> OpenStore(absl::Duration timeout);

 private:
  CollectiveNode(wire::Transport& transport, Options options);
  void Serve(wire::Connection& connection, const wire::Caller& caller);

  wire::Transport& transport_;
  const Options options_;
  wire::Admission admission_;
  const std::shared_ptr<LocalKeyValue> values_ = std::make_shared<LocalKeyValue>();  // of rank 0
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<wire::Listener> listener_;
};

}  // namespace muster::train
