// Messages over gRPC: one bidirectional stream per connection, payloads sent without a copy. The
// hello is in the call's metadata, so that a server checks it before it receives a message.
// Addresses are host:port, or unix:/path for tasks on this machine.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/wire/transport.h"

namespace muster::train::wire {

// The certificate authority, certificate and key of a job, in PEM. All its tasks share them.
struct Tls {
  std::string authority;
  std::string certificate;  // for kTaskTlsName
  std::string key;

  // Reads ca.crt, tls.crt and tls.key of a folder.
  static absl::StatusOr<Tls> Read(const std::string& folder);
};

// Where TCP without certificates is allowed.
enum class Plaintext { kLoopbackOnly, kAnywhere };

// With certificates both sides of a TCP connection must present one of the same authority (mutual
// TLS). Without them only Unix sockets and the loopback interface are used, unless the user allows
// plaintext anywhere. Thread-safe.
class GrpcTransport final : public Transport {
 public:
  GrpcTransport() = default;
  explicit GrpcTransport(std::optional<Tls> tls, Plaintext plaintext = Plaintext::kLoopbackOnly)
      : tls_(std::move(tls)), plaintext_(plaintext) {}

  absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                      const Frame& hello,
                                                      absl::Duration timeout) override;
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                   StreamHandler serve) override;

 private:
  absl::Status CheckProtected(const std::string& address) const;

  const std::optional<Tls> tls_;
  const Plaintext plaintext_ = Plaintext::kLoopbackOnly;
};

}  // namespace muster::train::wire
