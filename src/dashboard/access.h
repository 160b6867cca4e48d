// Decides which requests are served. A browser gets a session with a one-time token from the link
// that the command prints, or with the password; the session is a cookie.
//
//   link /login?token=… ──Redeem──> cookie ──Check──> GET  /api/…
//                                          └─ X-Muster-CSRF ──> POST, PUT, DELETE /api/…
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "dashboard/http.h"

namespace muster::dashboard {

struct AccessOptions {
  // The accepted values of the Host header. Any other means that a name of another site resolves
  // to this machine (DNS rebinding).
  std::vector<std::string> hosts;
  std::string cookie = "muster_session";  // its name
  bool secure = false;                    // served over TLS
  std::string password;                   // "" = links only
  const base::Clock* clock = &base::Clock::Real();
};

// Thread-safe.
class Access {
 public:
  explicit Access(AccessOptions options) : options_(std::move(options)) {}

  // Returns a new one-time token. It replaces an earlier one that has not been used.
  std::string NewToken();
  // Exchanges the token for a session and returns the Set-Cookie value, or Unauthenticated if the
  // token is wrong or was used before.
  absl::StatusOr<std::string> Redeem(absl::string_view token);
  // Likewise with the password. Returns ResourceExhausted after many wrong ones, for a while.
  absl::StatusOr<std::string> LogIn(absl::string_view password);

  // Returns PermissionDenied if the request is for another host or comes from another site.
  absl::Status CheckOrigin(const Request& request) const;
  // Returns the CSRF token of the request's session, or Unauthenticated.
  absl::StatusOr<std::string> SessionOf(const Request& request);
  // Returns OK if the request may be served: it has a session and, if it changes something, the
  // CSRF token and a JSON body. REQUIRES: CheckOrigin() returned OK.
  absl::Status Check(const Request& request);

  bool has_password() const { return !options_.password.empty(); }

 private:
  struct Session {
    std::string csrf;
    absl::Time used;
  };
  std::string StartSession() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const AccessOptions options_;
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);                        // "" = none
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);  // by id
  int wrong_passwords_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time locked_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace muster::dashboard
