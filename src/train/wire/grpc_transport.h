// Messages over gRPC: one bidirectional stream a connection, payloads sent from the memory they are
// in. Addresses are host:port, or unix:/path for tasks of this machine.
#pragma once

#include <memory>
#include <string>

#include "train/wire/transport.h"

namespace muster::train::wire {

class GrpcTransport final : public Transport {
 public:
  absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                      absl::Duration timeout) override;
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                   std::function<void(Connection&)> serve) override;
};

}  // namespace muster::train::wire
