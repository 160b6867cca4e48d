// Messages over gRPC: one bidirectional stream a connection, payloads sent from the memory they are
// in. Addresses are host:port, or unix:/path for tasks of this machine.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/wire/transport.h"

namespace muster::train::wire {

// Whom a job's tasks trust, and who they are: PEM. All have the same: it is the job's.
struct Tls {
  std::string authority;
  std::string certificate;  // for kTaskTlsName
  std::string key;

  // From ca.crt, tls.crt and tls.key of a folder.
  static absl::StatusOr<Tls> Read(const std::string& folder);
};

class GrpcTransport final : public Transport {
 public:
  GrpcTransport() = default;
  // Between machines both sides show a certificate of the same authority, and nobody else is spoken
  // to.
  explicit GrpcTransport(std::optional<Tls> tls) : tls_(std::move(tls)) {}

  absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                      absl::Duration timeout) override;
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                   std::function<void(Connection&)> serve) override;

 private:
  const std::optional<Tls> tls_;
};

}  // namespace muster::train::wire
