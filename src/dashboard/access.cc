#include "dashboard/access.h"

#include <openssl/crypto.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::dashboard {
namespace {

constexpr size_t kMaxSessions = 1000;
constexpr absl::Duration kSessionTime = absl::Hours(24 * 7);  // since its last request
constexpr int kMaxWrongPasswords = 5;
constexpr absl::Duration kLockedTime = absl::Seconds(30);

// Returns 256 random bits as text.
std::string NewSecret() {
  std::array<char, 32> bytes;
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (n > 0) filled += static_cast<size_t>(n);
  }
  return absl::WebSafeBase64Escape(absl::string_view(bytes.data(), bytes.size()));
}

// Compares in a time that does not depend on where the texts differ.
bool SameSecret(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Returns the value of a cookie, or "".
std::string CookieIn(const Request& request, const std::string& name) {
  const std::string cookies = request.Header("cookie");
  for (absl::string_view cookie : absl::StrSplit(cookies, ';')) {
    cookie = absl::StripAsciiWhitespace(cookie);
    if (absl::ConsumePrefix(&cookie, absl::StrCat(name, "="))) return std::string(cookie);
  }
  return "";
}

bool IsSafe(const std::string& method) { return method == "GET" || method == "HEAD"; }

}  // namespace

std::string Access::NewToken() {
  const absl::MutexLock lock(&mutex_);
  return token_ = NewSecret();
}

std::string Access::StartSession() {
  if (sessions_.size() >= kMaxSessions) {
    sessions_.erase(std::min_element(sessions_.begin(), sessions_.end(), [](auto& a, auto& b) {
      return a.second.used < b.second.used;
    }));
  }
  const std::string id = NewSecret();
  sessions_[id] = {.csrf = NewSecret(), .used = options_.clock->Now()};
  return absl::StrCat(options_.cookie, "=", id, "; Path=/; HttpOnly; SameSite=Strict",
                      options_.secure ? "; Secure" : "");
}

absl::StatusOr<std::string> Access::Redeem(absl::string_view token) {
  const absl::MutexLock lock(&mutex_);
  if (token_.empty() || !SameSecret(token, token_)) {
    return absl::UnauthenticatedError("this link has been used or is of an earlier dashboard");
  }
  token_.clear();
  return StartSession();
}

absl::StatusOr<std::string> Access::LogIn(absl::string_view password) {
  const absl::MutexLock lock(&mutex_);
  const absl::Time now = options_.clock->Now();
  if (now < locked_until_) {
    return absl::ResourceExhaustedError("too many wrong passwords; try again in half a minute");
  }
  if (!has_password() || !SameSecret(password, options_.password)) {
    if (++wrong_passwords_ >= kMaxWrongPasswords) {
      wrong_passwords_ = 0;
      locked_until_ = now + kLockedTime;
    }
    return absl::UnauthenticatedError("wrong password");
  }
  wrong_passwords_ = 0;
  return StartSession();
}

absl::Status Access::CheckOrigin(const Request& request) const {
  const std::string host = request.Header("host");
  const bool known = std::any_of(options_.hosts.begin(), options_.hosts.end(),
                                 [&](auto& one) { return absl::EqualsIgnoreCase(one, host); });
  if (!known) return absl::PermissionDeniedError("this dashboard is not served under this name");
  if (IsSafe(request.method)) return absl::OkStatus();
  const std::string site = request.Header("sec-fetch-site");
  const std::string origin = request.Header("origin");
  const std::string own = absl::StrCat(options_.secure ? "https://" : "http://", host);
  if ((!site.empty() && site != "same-origin") || (!origin.empty() && origin != own)) {
    return absl::PermissionDeniedError("requests of other sites are refused");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Access::SessionOf(const Request& request) {
  const std::string id = CookieIn(request, options_.cookie);
  const absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  const absl::Time now = options_.clock->Now();
  if (found == sessions_.end() || now - found->second.used > kSessionTime) {
    if (found != sessions_.end()) sessions_.erase(found);
    return absl::UnauthenticatedError("no session; run `muster dashboard` and open its link");
  }
  found->second.used = now;
  return found->second.csrf;
}

absl::Status Access::Check(const Request& request) {
  const auto csrf = SessionOf(request);
  if (!csrf.ok()) return csrf.status();
  if (IsSafe(request.method)) return absl::OkStatus();
  if (!SameSecret(request.Header("x-muster-csrf"), *csrf)) {
    return absl::PermissionDeniedError("the header X-Muster-CSRF is missing or wrong");
  }
  if (request.method != "DELETE" &&
      !absl::StartsWith(request.Header("content-type"), "application/json")) {
    return absl::InvalidArgumentError("the body must be application/json");
  }
  return absl::OkStatus();
}

}  // namespace muster::dashboard
