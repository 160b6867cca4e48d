#include "storage/gs/client.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "storage/file_errors.h"
#include "storage/objects.h"

namespace muster::storage {
namespace {

using To = GsRequest::To;

// HTTP libraries and proxies resolve such path components.
bool IsDots(absl::string_view name) { return name == "." || name == ".."; }

absl::Status CheckNames(const GsRequest& request) {
  const bool names = request.to != To::kList && request.to != To::kBucket;
  const bool dots = IsDots(request.url.name) && names;
  if (!dots && !IsDots(request.url.authority)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(request.url.ToString(), ": Google Cloud Storage does not allow this name"));
}

struct Refusal {
  std::string reason;
  std::string message;
};

Refusal ParseRefusal(absl::string_view body) {
  const nlohmann::json json = base::ParseJson(body);
  if (!json.is_object() || !json.contains("error")) return {};
  const nlohmann::json& error = json["error"];
  Refusal refusal{.message = base::TextMember(error, "message")};
  const auto errors = error.is_object() ? error.find("errors") : error.end();
  if (errors != error.end() && errors->is_array() && !errors->empty()) {
    refusal.reason = base::TextMember(errors->front(), "reason");
  }
  return refusal;
}

bool IsQuota(absl::string_view reason) {
  return absl::EndsWithIgnoreCase(reason, "rateLimitExceeded") ||
         absl::EqualsIgnoreCase(reason, "quotaExceeded") ||
         absl::EqualsIgnoreCase(reason, "dailyLimitExceeded");
}

}  // namespace

absl::StatusOr<GsOptions> GsOptions::FromVariables(const base::Variables& variables) {
  GsOptions options;
  options.http = net::HttpOptions::FromEnvironment();
  const std::string emulator = variables("STORAGE_EMULATOR_HOST");
  const std::string other = variables("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
  if (!emulator.empty()) {
    options.emulator = true;
    options.endpoint = absl::StrCat(absl::StrContains(emulator, "://") ? "" : "http://", emulator);
  } else if (!other.empty()) {
    options.endpoint = other;
  }
  absl::string_view endpoint = options.endpoint;
  while (absl::ConsumeSuffix(&endpoint, "/")) {
  }
  absl::ConsumeSuffix(&endpoint, "/storage/v1");
  options.endpoint = std::string(endpoint);
  const bool http = absl::StartsWith(options.endpoint, "http://");
  if (options.emulator && !http && !absl::StartsWith(options.endpoint, "https://")) {
    return absl::InvalidArgumentError(
        "STORAGE_EMULATOR_HOST must be host:port, or begin with http:// or https://");
  }
  if (!options.emulator && !net::IsSafeForSecrets(options.endpoint)) {
    return absl::InvalidArgumentError(
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE must begin with https://: credentials are sent "
        "there");
  }
  return options;
}

absl::StatusOr<std::unique_ptr<GsClient>> GsClient::FromVariables(
    const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(GsOptions options, GsOptions::FromVariables(variables));
  MUSTER_ASSIGN_OR_RETURN(auto http, net::HttpClient::Create(options.http));
  std::unique_ptr<GoogleCredentialChain> credentials;
  if (!options.emulator) credentials = std::make_unique<GoogleCredentialChain>(variables, *http);
  return std::make_unique<GsClient>(std::move(options), std::move(http), std::move(credentials));
}

std::string GsClient::AddressOf(const GsRequest& request) const {
  if (request.to == To::kSession) return request.session;
  std::string address =
      absl::StrCat(options_.endpoint, request.to == To::kUpload ? "/upload" : "", "/storage/v1/b");
  if (request.to != To::kBuckets) {
    absl::StrAppend(&address, "/", net::PercentEncode(request.url.authority, false));
    if (request.to != To::kBucket) absl::StrAppend(&address, "/o");
  }
  std::vector<std::string> query;
  if (request.to == To::kObject) {
    absl::StrAppend(&address, "/", net::PercentEncode(request.url.name, false));
  } else if (request.to == To::kUpload) {
    query.push_back(absl::StrCat("name=", net::PercentEncode(request.url.name, false)));
  }
  for (const auto& [name, value] : request.query) {
    query.push_back(absl::StrCat(name, "=", net::PercentEncode(value, false)));
  }
  return absl::StrCat(address, query.empty() ? "" : "?", absl::StrJoin(query, "&"));
}

absl::StatusOr<net::Response> GsClient::Send(const GsRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckNames(request));
  const bool authenticated = credentials_ != nullptr && request.to != To::kSession;
  for (bool again = false;; again = true) {
    net::Request http{.method = request.method,
                      .url = AddressOf(request),
                      .headers = request.headers,
                      .body = request.body,
                      .sink = request.sink,
                      .idempotent = request.idempotent};
    GoogleToken token;
    if (authenticated) {
      MUSTER_ASSIGN_OR_RETURN(token, credentials_->Get());
      http.headers.emplace_back("Authorization", absl::StrCat("Bearer ", token.value));
    }
    auto response = http_->Do(http);
    if (!response.ok()) return base::Annotate(response.status(), request.url.ToString());
    if (again || !authenticated || response->status != 401) return response;
    credentials_->Forget(token);
  }
}

absl::Status GsClient::ErrorOf(const GsRequest& request, const net::Response& response) {
  if (response.ok()) return absl::OkStatus();
  const Url& url = request.url;
  const Refusal refusal = ParseRefusal(response.body);
  const absl::Status status = net::StatusOf(response);
  const auto error = [&](absl::StatusCode code, absl::string_view what) {
    return absl::Status(
        code, absl::StrCat(url.ToString(), ": ", what, refusal.message.empty() ? "" : ": ",
                           net::ServerMessage(refusal.message)));
  };
  switch (response.status) {
    case 401:
      return error(status.code(),
                   "the credentials were rejected; check them, or sign in with `gcloud auth "
                   "application-default login`");
    case 403:
      if (IsQuota(refusal.reason)) break;
      return error(status.code(),
                   "these credentials lack the permission; ask the bucket's owner for it");
    case 404:
      // A missing bucket and a missing object differ only in the message.
      if (request.to != To::kObject || absl::StrContains(refusal.message, "bucket does not exist"))
        return NoBucket(url);
      return Absent(url);
    case 412:
      return Exists(url);
    default:
      break;
  }
  if (response.status == 400 && absl::StrContains(refusal.message, "CRC32C")) {
    return DamagedUpload(url);
  }
  const bool quota = response.status == 403 || response.status == 413;
  return error(quota ? absl::StatusCode::kResourceExhausted : status.code(), status.message());
}

}  // namespace muster::storage
