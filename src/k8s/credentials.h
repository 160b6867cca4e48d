// What a request carries to say who we are.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/renewed.h"
#include "k8s/config.h"

namespace muster::k8s {

struct Credential {
  std::string authorization;  // the header: "Bearer …", "Basic …"; "": none
  std::string certificate;    // PEM, as is the key; "": none
  std::string key;
  absl::Time expires = absl::InfiniteFuture();  // when to look again

  bool operator==(const Credential& other) const {
    return authorization == other.authorization && certificate == other.certificate &&
           key == other.key;
  }
};

// Keeps a user's credential until it expires: files are read again every minute, a plugin runs
// again when what it gave is used up. Thread-safe; one thread looks, the others wait for it.
class Credentials {
 public:
  // How long a plugin may take; one that a terminal lets ask its user has more time.
  static constexpr absl::Duration kPluginTimeout = absl::Minutes(1);

  Credentials(const ClusterConfig& config, const Clock& clock,
              absl::Duration plugin_timeout = kPluginTimeout);

  // Unauthenticated, and others, when there is none: the message names the file or the plugin and
  // what to do, and holds no secret.
  absl::StatusOr<Credential> Get() { return known_.Get(); }
  // The server does not take it any more.
  void Forget(const Credential& refused) { known_.Forget(refused); }

 private:
  absl::StatusOr<Credential> Look() const;
  absl::StatusOr<Credential> FromUser() const;

  const ClusterConfig config_;
  const Clock& clock_;
  const absl::Duration plugin_timeout_;
  Renewed<Credential> known_;
};

// When a certificate (the first of a PEM text) expires. InvalidArgument when it is none.
absl::StatusOr<absl::Time> ExpiryOf(const std::string& certificate);

}  // namespace muster::k8s
