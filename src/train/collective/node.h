// A task of an all-reduce between machines: listens at its address for the other tasks.
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
    std::vector<cluster::TaskId> tasks;  // by rank
    std::vector<std::string> addresses;  // by rank
    wire::Frame hello;                   // identifies this task
    std::string cluster;                 // must be the same in every task
    std::function<void(const std::string&)> log;
  };
  // Listens. Returns errors as Transport::Listen(). `transport` must outlive the node.
  static absl::StatusOr<std::unique_ptr<CollectiveNode>> Start(wire::Transport& transport,
                                                               Options options);
  // Waits up to 3 s until the peers have received all bytes sent. REQUIRES: Gloo's connections are
  // closed.
  ~CollectiveNode();
  CollectiveNode(const CollectiveNode&) = delete;
  CollectiveNode& operator=(const CollectiveNode&) = delete;

  Relay& relay() { return *relay_; }
  // Opens the store of rank 0. Returns Unavailable if it does not answer in time; other errors are
  // final.
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
