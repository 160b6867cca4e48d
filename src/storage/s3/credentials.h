// Who we are to S3.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/renewed.h"
#include "base/variables.h"
#include "storage/local_service.h"

namespace muster::storage {

struct AwsCredentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // "": none
  absl::Time expires = absl::InfiniteFuture();

  bool operator==(const AwsCredentials&) const = default;
};

// Finds credentials where Amazon's tools do: the environment, the shared files' profile, the
// container's agent, the instance's metadata (version 2). Keeps them until shortly before they
// expire. Thread-safe.
class AwsCredentialChain {
 public:
  explicit AwsCredentialChain(Variables variables, const Clock& clock = Clock::Real());

  // Unauthenticated when there are none anywhere: the message says where to put them.
  absl::StatusOr<AwsCredentials> Get() { return known_.Get(); }
  // The server does not take them any more.
  void Forget(const AwsCredentials& refused) { known_.Forget(refused); }

 private:
  using Found = absl::StatusOr<std::optional<AwsCredentials>>;
  absl::StatusOr<AwsCredentials> Look();
  Found FromVariables() const;
  Found FromProfile() const;
  Found FromContainer();
  Found FromInstance();

  const Variables variables_;
  LocalService service_;
  Renewed<AwsCredentials> known_;
};

}  // namespace muster::storage
