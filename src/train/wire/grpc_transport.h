// Messages over gRPC: one bidirectional stream a connection, payloads sent from the memory they are
// in. The hello travels in the call's metadata, so a server judges it before it takes a message.
// Addresses are host:port, or unix:/path for tasks of this machine.
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

// Over TCP without certificates.
enum class Plaintext { kLoopbackOnly, kAnywhere };

// With certificates both sides of a TCP connection show one of the same authority, and nobody else
// is spoken to. Without them only Unix sockets and the loopback interface are used, unless the user
// allows plaintext anywhere.
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
