#include "storage/gs/credentials.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "storage/gs/jwt.h"

namespace muster::storage {
namespace {

// The metadata server returns the same token until 4 minutes before it expires; a larger margin
// would request it again and again.
constexpr absl::Duration kTokenMargin = absl::Minutes(4);
constexpr int64_t kMaxCredentialBytes = 1 << 20;
constexpr int64_t kMaxTokenSeconds = 24 * 3600;  // Google's tokens are valid for an hour
constexpr char kTokenServer[] = "https://oauth2.googleapis.com/token";
constexpr char kScope[] = "https://www.googleapis.com/auth/cloud-platform";
constexpr char kMetadataHost[] = "169.254.169.254";
constexpr char kVariable[] = "GOOGLE_APPLICATION_CREDENTIALS";

// Returns the file of `gcloud auth application-default login`; "" if HOME is not set.
std::string GcloudFile(const base::Variables& variables) {
  std::string folder = variables("CLOUDSDK_CONFIG");
  if (folder.empty() && !variables("HOME").empty()) {
    folder = base::JoinPath(variables("HOME"), ".config/gcloud");
  }
  return folder.empty() ? "" : base::JoinPath(folder, "application_default_credentials.json");
}

// Returns the content of the credentials file; null if there is none.
nlohmann::json FileOf(const base::Variables& variables) {
  std::string path = variables(kVariable);
  if (path.empty()) path = GcloudFile(variables);
  const auto text =
      path.empty() ? absl::NotFoundError("") : base::ReadFile(path, kMaxCredentialBytes);
  return text.ok() ? base::ParseJson(*text) : nlohmann::json();
}

absl::Status Unusable(const std::string& path, absl::string_view why) {
  return absl::UnauthenticatedError(absl::StrCat(path, ": ", why));
}

// Returns the error for a file whose credentials Google rejected.
absl::Status Refusal(const nlohmann::json& file, const std::string& path,
                     const net::Response& response) {
  const nlohmann::json answer = base::ParseJson(response.body);
  const std::string error = base::TextMember(answer, "error");
  const std::string words = base::TextMember(answer, "error_description");
  if (error.empty() && net::IsRetryableStatus(response.status)) {
    return base::Annotate(net::StatusOf(response), "Google's token server");
  }
  const bool user = base::TextMember(file, "type") == "authorized_user";
  absl::string_view advice = "create a new key for the service account";
  if (user) advice = "sign in with `gcloud auth application-default login`";
  if (absl::StrContains(words, "iat")) advice = "check this machine's clock";
  return Unusable(path, absl::StrCat("Google rejected these credentials; ", advice, " (",
                                     error.empty() ? absl::StrCat("HTTP ", response.status)
                                                   : net::ServerMessage(error),
                                     words.empty() ? "" : ": ", net::ServerMessage(words), ")"));
}

}  // namespace

std::string GoogleProject(const base::Variables& variables) {
  for (const char* name : {"GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"}) {
    if (std::string project = variables(name); !project.empty()) return project;
  }
  const nlohmann::json file = FileOf(variables);
  const std::string project = base::TextMember(file, "project_id");
  return project.empty() ? base::TextMember(file, "quota_project_id") : project;
}

std::string GoogleMember(const base::Variables& variables) {
  const nlohmann::json file = FileOf(variables);
  const bool user = base::TextMember(file, "type") == "authorized_user";
  const std::string email = base::TextMember(file, user ? "account" : "client_email");
  return absl::StrCat(user ? "user:" : "serviceAccount:", email.empty() ? "EMAIL" : email);
}

std::string GoogleAccount(const base::Variables& variables) {
  if (const std::string emulator = variables("STORAGE_EMULATOR_HOST"); !emulator.empty()) {
    return absl::StrCat("no account: STORAGE_EMULATOR_HOST names the emulator ", emulator);
  }
  for (const std::string& path : GoogleCredentialFiles(variables)) {
    if (!base::ReadFile(path, kMaxCredentialBytes).ok()) continue;
    return absl::StrCat(GoogleMember(variables), " of ", path);
  }
  return "the service account of this machine";
}

std::vector<std::string> GoogleCredentialFiles(const base::Variables& variables) {
  std::vector<std::string> files = {variables(kVariable), GcloudFile(variables)};
  std::erase(files, "");
  return files;
}

GoogleCredentialChain::GoogleCredentialChain(base::Variables variables, net::HttpClient& http,
                                             const base::Clock& clock)
    : variables_(std::move(variables)),
      http_(http),
      clock_(clock),
      cache_([this] { return FindToken(); }, kTokenMargin, clock) {}

absl::StatusOr<GoogleToken> GoogleCredentialChain::FindToken() {
  if (const std::string path = variables_(kVariable); !path.empty()) {
    auto token = FromFile(path);
    if (!absl::IsNotFound(token.status())) return token;
    return absl::UnauthenticatedError(
        absl::StrCat(kVariable, " names ", path, ", which does not exist"));
  }
  if (const std::string path = GcloudFile(variables_); !path.empty()) {
    auto token = FromFile(path);
    if (!absl::IsNotFound(token.status())) return token;
  }
  MUSTER_ASSIGN_OR_RETURN(std::optional<GoogleToken> token, FromMetadata());
  if (token.has_value()) return *std::move(token);
  return absl::UnauthenticatedError(absl::StrCat(
      "no credentials for Google Cloud: set ", kVariable,
      " to the key file of a service account, or run `gcloud auth application-default login`; for ",
      "an emulator set STORAGE_EMULATOR_HOST; see docs/storage.md"));
}

absl::StatusOr<GoogleToken> GoogleCredentialChain::FromFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxCredentialBytes));
  const nlohmann::json file = base::ParseJson(text);
  if (!file.is_object()) return Unusable(path, "is not a JSON file with credentials");
  const std::string type = base::TextMember(file, "type");
  if (type == "service_account") return ForServiceAccount(file, path);
  if (type == "authorized_user") return ForUser(file, path);
  return Unusable(path, absl::StrCat("contains credentials of type '", net::ServerMessage(type),
                                     "'; muster supports service_account and authorized_user"));
}

absl::StatusOr<GoogleToken> GoogleCredentialChain::ForServiceAccount(const nlohmann::json& file,
                                                                     const std::string& path) {
  const std::string email = base::TextMember(file, "client_email");
  const std::string key = base::TextMember(file, "private_key");
  if (email.empty() || key.empty()) return Unusable(path, "has no client_email or private_key");
  const int64_t now = absl::ToUnixSeconds(clock_.Now());
  const nlohmann::json header = {
      {"alg", "RS256"}, {"typ", "JWT"}, {"kid", base::TextMember(file, "private_key_id")}};
  const nlohmann::json claims = {
      {"iss", email}, {"aud", kTokenServer}, {"scope", kScope}, {"iat", now}, {"exp", now + 3600}};
  const auto assertion = SignJwt(header.dump(), claims.dump(), key);
  if (!assertion.ok()) return Unusable(path, assertion.status().message());
  return Exchange(
      file, path,
      {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}, {"assertion", *assertion}});
}

absl::StatusOr<GoogleToken> GoogleCredentialChain::ForUser(const nlohmann::json& file,
                                                           const std::string& path) {
  Form form = {{"grant_type", "refresh_token"}};
  for (const char* name : {"client_id", "client_secret", "refresh_token"}) {
    const std::string value = base::TextMember(file, name);
    if (value.empty()) return Unusable(path, absl::StrCat("has no ", name));
    form.emplace_back(name, value);
  }
  return Exchange(file, path, form);
}

absl::StatusOr<GoogleToken> GoogleCredentialChain::Exchange(const nlohmann::json& file,
                                                            const std::string& path,
                                                            const Form& form) {
  std::string address = base::TextMember(file, "token_uri");
  if (address.empty()) address = kTokenServer;
  if (!net::IsSafeForSecrets(address)) {
    return Unusable(path, "its token_uri does not begin with https://, so no secret is sent there");
  }
  std::string body;
  for (const auto& [name, value] : form) {
    absl::StrAppend(&body, body.empty() ? "" : "&", name, "=", net::PercentEncode(value, false));
  }
  const auto response =
      http_.Do({.method = "POST",
                .url = address,
                .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                .body = body,
                .max_response_bytes = kMaxCredentialBytes,
                .timeout = absl::Seconds(30)});
  if (!response.ok()) return base::Annotate(response.status(), "Google's token server");
  if (!response->ok()) return Refusal(file, path, *response);
  return ParseToken(response->body, "Google's token server");
}

absl::StatusOr<std::optional<GoogleToken>> GoogleCredentialChain::FromMetadata() {
  if (absl::EqualsIgnoreCase(variables_("NO_GCE_CHECK"), "true")) return std::nullopt;
  const std::string named = variables_("GCE_METADATA_HOST");
  const auto answer =
      service_.Send("GET",
                    absl::StrCat("http://", named.empty() ? kMetadataHost : named,
                                 "/computeMetadata/v1/instance/service-accounts/default/token"),
                    {{"Metadata-Flavor", "Google"}});
  // Another service at that address does not send this header.
  const bool google = answer.ok() && answer->Header("Metadata-Flavor") == "Google";
  // Most machines have no metadata server: only one that was configured must respond.
  if (!google && named.empty()) return std::nullopt;
  if (!answer.ok())
    return base::Annotate(answer.status(), "the metadata server at GCE_METADATA_HOST");
  if (!google) {
    return absl::UnauthenticatedError("the service at GCE_METADATA_HOST is not a metadata server");
  }
  return ParseToken(answer->body, "the metadata server");
}

absl::StatusOr<GoogleToken> GoogleCredentialChain::ParseToken(absl::string_view text,
                                                              absl::string_view origin) const {
  const nlohmann::json json = base::ParseJson(text);
  GoogleToken token{.value = base::TextMember(json, "access_token")};
  const bool timed =
      json.is_object() && json.contains("expires_in") && json["expires_in"].is_number_integer();
  if (token.value.empty() || !timed || !net::FitsHeader(token.value)) {
    return absl::UnauthenticatedError(absl::StrCat(origin, " returned no usable token"));
  }
  const auto seconds = std::clamp<int64_t>(json["expires_in"].get<int64_t>(), 0, kMaxTokenSeconds);
  token.expires = clock_.Now() + absl::Seconds(seconds);
  return token;
}

}  // namespace muster::storage
