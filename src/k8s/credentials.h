// Credentials of a user for the API server.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/expiring_cache.h"
#include "k8s/config.h"

namespace muster::k8s {

struct Credential {
  std::string authorization;  // the header: "Bearer …", "Basic …"; "": none
  std::string certificate;    // PEM, like the key; "": none
  std::string key;
  absl::Time expires = absl::InfiniteFuture();  // when to load it again

  bool operator==(const Credential& other) const {
    return authorization == other.authorization && certificate == other.certificate &&
           key == other.key;
  }
};

// Caches the credential of a user until it expires. Files are read again every minute, and a plugin
// runs again when its credential expires. Thread-safe: one thread loads while the others wait.
class Credentials {
 public:
  // Limit for a plugin. An interactive one has more time.
  static constexpr absl::Duration kPluginTimeout = absl::Minutes(1);

  Credentials(const ClusterConfig& config, const base::Clock& clock,
              absl::Duration plugin_timeout = kPluginTimeout);

  // Returns Unauthenticated, or the error of the file or the plugin. The message names it and the
  // remedy, and contains no secret.
  absl::StatusOr<Credential> Get() { return cache_.Get(); }
  // Drops a credential that the server has rejected.
  void Forget(const Credential& refused) { cache_.Forget(refused); }

 private:
  absl::StatusOr<Credential> Load() const;
  absl::StatusOr<Credential> FromUser() const;

  const ClusterConfig config_;
  const base::Clock& clock_;
  const absl::Duration plugin_timeout_;
  base::ExpiringCache<Credential> cache_;
};

// Returns when the first certificate of a PEM text expires, or InvalidArgument.
absl::StatusOr<absl::Time> ExpiryOf(const std::string& certificate);

}  // namespace muster::k8s
