// Google credentials and access tokens.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/expiring_cache.h"
#include "base/variables.h"
#include "net/http_client.h"
#include "nlohmann/json_fwd.hpp"
#include "storage/local_service.h"

namespace muster::storage {

struct GoogleToken {
  std::string value;
  absl::Time expires = absl::InfinitePast();

  bool operator==(const GoogleToken&) const = default;
};

// Returns the project of Google's tools: GOOGLE_CLOUD_PROJECT, CLOUDSDK_CORE_PROJECT, else that of
// the credentials file; "" if none is set.
std::string GoogleProject(const base::Variables& variables);

// Returns the account of the credentials as an IAM member: "serviceAccount:EMAIL" or "user:EMAIL".
std::string GoogleMember(const base::Variables& variables);

// Returns whose credentials are used, and where they are from: "serviceAccount:EMAIL of FILE".
std::string GoogleAccount(const base::Variables& variables);

// Returns the paths where credentials are searched, whether or not the files exist.
std::vector<std::string> GoogleCredentialFiles(const base::Variables& variables);

// Finds credentials where Google's tools do and exchanges them for access tokens: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, that of `gcloud auth application-default login`, then the
// machine's metadata server. Caches a token until shortly before it expires. Thread-safe.
class GoogleCredentialChain {
 public:
  // REQUIRES: `http` outlives this object.
  GoogleCredentialChain(base::Variables variables, net::HttpClient& http,
                        const base::Clock& clock = base::Clock::Real());

  // Returns Unauthenticated, with the remedy, if there are no credentials or Google rejects them.
  absl::StatusOr<GoogleToken> Get() { return cache_.Get(); }
  // Drops a token that the server rejected from the cache.
  void Forget(const GoogleToken& rejected) { cache_.Forget(rejected); }

 private:
  using Form = std::vector<std::pair<std::string, std::string>>;

  absl::StatusOr<GoogleToken> FindToken();
  absl::StatusOr<GoogleToken> FromFile(const std::string& path);
  absl::StatusOr<GoogleToken> ForServiceAccount(const nlohmann::json& file,
                                                const std::string& path);
  absl::StatusOr<GoogleToken> ForUser(const nlohmann::json& file, const std::string& path);
  absl::StatusOr<GoogleToken> Exchange(const nlohmann::json& file, const std::string& path,
                                       const Form& form);
  // Returns nullopt if this machine has no metadata server.
  absl::StatusOr<std::optional<GoogleToken>> FromMetadata();
  absl::StatusOr<GoogleToken> ParseToken(absl::string_view text, absl::string_view origin) const;

  const base::Variables variables_;
  net::HttpClient& http_;
  const base::Clock& clock_;
  LocalService service_;
  base::ExpiringCache<GoogleToken> cache_;
};

}  // namespace muster::storage
