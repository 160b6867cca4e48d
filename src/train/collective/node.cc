#include "train/collective/node.h"

#include <utility>

#include "base/status_macros.h"

namespace muster::train {
namespace {

constexpr absl::Duration kDrainTimeout = absl::Seconds(3);

}  // namespace

absl::StatusOr<std::unique_ptr<CollectiveNode>> CollectiveNode::Start(wire::Transport& transport,
                                                                      Options options) {
  std::unique_ptr<CollectiveNode> node(new CollectiveNode(transport, std::move(options)));
  const Options& own = node->options_;
  MUSTER_ASSIGN_OR_RETURN(node->relay_, Relay::Create(transport, {.rank = own.rank,
                                                                  .addresses = own.addresses,
                                                                  .hello = own.hello,
                                                                  .log = own.log}));
  MUSTER_ASSIGN_OR_RETURN(node->listener_,
                          transport.Listen(own.addresses[static_cast<size_t>(own.rank)],
                                           [node = node.get()](wire::Connection& connection,
                                                               const wire::Caller& caller) {
                                             node->Serve(connection, caller);
                                           }));
  return node;
}

CollectiveNode::CollectiveNode(wire::Transport& transport, Options options)
    : transport_(transport),
      options_(std::move(options)),
      admission_({.self = options_.tasks[static_cast<size_t>(options_.rank)],
                  .tasks = options_.tasks,
                  .cluster = options_.cluster,
                  .log = options_.log}) {}

CollectiveNode::~CollectiveNode() {
  if (relay_ != nullptr) relay_->Drain(kDrainTimeout);
  listener_.reset();  // first: its handlers use the other members
}

void CollectiveNode::Serve(wire::Connection& connection, const wire::Caller& caller) {
  const auto permit = admission_.Admit(caller);
  if (!permit.ok()) return wire::Refuse(connection, permit.status());
  switch (caller.hello.service()) {
    case wire::Frame::RELAY:
      return relay_->Serve(connection, caller.hello);
    case wire::Frame::STORE:
      if (options_.rank == 0) return values_->Serve(connection);
      break;
    default:
      break;
  }
  wire::Refuse(connection,
               absl::InvalidArgumentError("this task serves only STORE (rank 0) and RELAY"));
}

absl::StatusOr<std::shared_ptr<KeyValue>> CollectiveNode::OpenStore(absl::Duration timeout) {
  if (options_.rank == 0) return values_;
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<KeyValue> remote,
      RemoteKeyValue::Connect(transport_, options_.addresses[0], options_.hello, timeout));
  return remote;
}

}  // namespace muster::train
