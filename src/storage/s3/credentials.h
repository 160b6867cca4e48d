// AWS credentials.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/expiring_cache.h"
#include "base/variables.h"
#include "storage/local_service.h"

namespace muster::storage {

struct AwsCredentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // "" if there is none
  absl::Time expires = absl::InfiniteFuture();
  std::string origin;  // where they are from, for messages: "the environment"

  bool operator==(const AwsCredentials&) const = default;
};

// Finds credentials where Amazon's tools do: the environment, the profile in the shared files, the
// container's agent, the instance metadata service (version 2). Caches them until shortly before
// they expire. Thread-safe.
class AwsCredentialChain {
 public:
  explicit AwsCredentialChain(base::Variables variables,
                              const base::Clock& clock = base::Clock::Real());

  // Returns Unauthenticated, with the remedy, if there are no credentials.
  absl::StatusOr<AwsCredentials> Get() { return cache_.Get(); }
  // Drops credentials that the server rejected from the cache.
  void Forget(const AwsCredentials& rejected) { cache_.Forget(rejected); }

 private:
  using Found = absl::StatusOr<std::optional<AwsCredentials>>;
  absl::StatusOr<AwsCredentials> FindCredentials();
  Found FromVariables() const;
  Found FromProfile() const;
  Found FromContainer();
  Found FromInstance();

  const base::Variables variables_;
  LocalService service_;
  base::ExpiringCache<AwsCredentials> cache_;
};

}  // namespace muster::storage
