// Who we are to S3.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "net/http_client.h"
#include "storage/variables.h"

namespace muster::storage {

struct AwsCredentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // "": none
  absl::Time expires = absl::InfiniteFuture();
};

// Finds credentials where Amazon's tools do: the environment, the shared files' profile, the
// container's agent, the instance's metadata (version 2). Keeps them until shortly before they
// expire. Thread-safe.
class AwsCredentialChain {
 public:
  explicit AwsCredentialChain(Variables variables, const Clock& clock = Clock::Real());

  // Unauthenticated when there are none anywhere: the message says where to put them.
  absl::StatusOr<AwsCredentials> Get();
  // The server does not take them any more: the next Get() looks again.
  void Forget();

 private:
  using Found = absl::StatusOr<std::optional<AwsCredentials>>;
  absl::StatusOr<AwsCredentials> Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Found FromVariables() const;
  Found FromProfile() const;
  Found FromContainer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Found FromInstance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The body of an answer; a service on this very machine answers at once or is not there.
  absl::StatusOr<std::string> Ask(const std::string& method, const std::string& url,
                                  const net::Headers& headers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Variables variables_;
  const Clock& clock_;
  absl::Mutex mutex_;
  std::optional<AwsCredentials> known_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<net::HttpClient> client_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::storage
