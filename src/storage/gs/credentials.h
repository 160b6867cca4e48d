// Who we are to Google.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/renewed.h"
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

// The project that Google's tools would work in: GOOGLE_CLOUD_PROJECT, CLOUDSDK_CORE_PROJECT, else
// that of the credentials' file; "" when none of them names one.
std::string GoogleProject(const Variables& variables);

// The files that credentials are looked for in, whether or not they are there.
std::vector<std::string> GoogleCredentialFiles(const Variables& variables);

// Finds credentials where Google's tools do, and has them turned into tokens: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, that of `gcloud auth application-default login`, the
// machine's metadata server. Keeps a token until shortly before it expires. Thread-safe.
class GoogleCredentialChain {
 public:
  // `http` must outlive it.
  GoogleCredentialChain(Variables variables, net::HttpClient& http,
                        const Clock& clock = Clock::Real());

  // Unauthenticated when there are none anywhere, or Google does not take them: the message says
  // what to do.
  absl::StatusOr<GoogleToken> Get() { return known_.Get(); }
  // The server does not take it any more.
  void Forget(const GoogleToken& refused) { known_.Forget(refused); }

 private:
  using Form = std::vector<std::pair<std::string, std::string>>;

  absl::StatusOr<GoogleToken> Look();
  absl::StatusOr<GoogleToken> FromFile(const std::string& path);
  absl::StatusOr<GoogleToken> ForServiceAccount(const nlohmann::json& file,
                                                const std::string& path);
  absl::StatusOr<GoogleToken> ForUser(const nlohmann::json& file, const std::string& path);
  absl::StatusOr<GoogleToken> Exchange(const nlohmann::json& file, const std::string& path,
                                       const Form& form);
  // nullopt: this machine has no such server.
  absl::StatusOr<std::optional<GoogleToken>> FromMetadata();
  absl::StatusOr<GoogleToken> ParseAnswer(absl::string_view text, absl::string_view origin) const;

  const Variables variables_;
  net::HttpClient& http_;
  const Clock& clock_;
  LocalService service_;
  Renewed<GoogleToken> known_;
};

}  // namespace muster::storage
