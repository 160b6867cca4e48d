#include "storage/s3/client.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/objects.h"
#include "storage/s3/profile.h"
#include "storage/xml.h"

namespace muster::storage {
namespace {

struct ErrorMeaning {
  absl::string_view code;  // S3's
  absl::StatusCode status;
  absl::string_view advice;
};

constexpr ErrorMeaning kErrorMeanings[] = {
    {"AccessDenied", absl::StatusCode::kPermissionDenied,
     "these credentials lack the permission; ask the bucket's owner for it"},
    {"InvalidAccessKeyId", absl::StatusCode::kUnauthenticated,
     "unknown access key; check AWS_ACCESS_KEY_ID, or the profile"},
    {"SignatureDoesNotMatch", absl::StatusCode::kUnauthenticated,
     "the secret key is wrong; check AWS_SECRET_ACCESS_KEY, or the profile"},
    {"ExpiredToken", absl::StatusCode::kUnauthenticated,
     "the credentials have expired; get new ones"},
    {"InvalidToken", absl::StatusCode::kUnauthenticated,
     "the session token is wrong; check AWS_SESSION_TOKEN"},
    {"RequestTimeTooSkewed", absl::StatusCode::kFailedPrecondition,
     "this machine's clock is wrong; set it"},
    {"PreconditionFailed", absl::StatusCode::kAlreadyExists, "already exists"},
    {"QuotaExceeded", absl::StatusCode::kResourceExhausted, "delete files, or raise the quota"},
    {"EntityTooLarge", absl::StatusCode::kResourceExhausted, "the file is too large for S3"},
    {"BadDigest", absl::StatusCode::kDataLoss, "the upload was corrupted in transit; try again"},
    {"XAmzContentSHA256Mismatch", absl::StatusCode::kDataLoss,
     "the upload was corrupted in transit; try again"},
    {"InvalidBucketName", absl::StatusCode::kInvalidArgument, "invalid bucket name"},
};

// Returns the bucket's region if the response reports that it is another one; "" otherwise.
std::string OtherRegion(const net::Response& response, absl::string_view code) {
  if (response.status != 301 && code != "PermanentRedirect" &&
      code != "AuthorizationHeaderMalformed") {
    return "";
  }
  return std::string(response.Header("x-amz-bucket-region"));
}

}  // namespace

absl::StatusOr<S3Options> S3Options::FromVariables(const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(const Profile profile, ReadProfile(variables));
  const auto first = [](std::initializer_list<std::string> values) {
    for (const std::string& value : values) {
      if (!value.empty()) return value;
    }
    return std::string();
  };
  S3Options options;
  options.endpoint = first({variables("AWS_ENDPOINT_URL_S3"), variables("AWS_ENDPOINT_URL"),
                            profile.Get("endpoint_url")});
  options.region = first({variables("AWS_REGION"), variables("AWS_DEFAULT_REGION"),
                          profile.Get("region"), options.region});
  options.http = net::HttpOptions::FromEnvironment();
  const std::string authorities = variables("AWS_CA_BUNDLE");
  if (!authorities.empty()) options.http.ca_file = authorities;
  while (absl::EndsWith(options.endpoint, "/")) options.endpoint.pop_back();
  if (!options.endpoint.empty() && !absl::StartsWith(options.endpoint, "http://") &&
      !absl::StartsWith(options.endpoint, "https://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the S3 endpoint '", net::ServerMessage(options.endpoint),
        "' must begin with http:// or https://; check AWS_ENDPOINT_URL and the ", "profile"));
  }
  return options;
}

absl::StatusOr<std::unique_ptr<S3Client>> S3Client::FromVariables(
    const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(S3Options options, S3Options::FromVariables(variables));
  MUSTER_ASSIGN_OR_RETURN(auto http, net::HttpClient::Create(options.http));
  return std::make_unique<S3Client>(std::move(options), std::move(http),
                                    std::make_unique<AwsCredentialChain>(variables));
}

// Amazon expects the bucket in the host name, unless it contains a dot, which the certificate does
// not cover. Other servers expect it in the path.
std::string S3Client::AddressOf(const S3Request& request) const {
  const std::string& bucket = request.url.authority;
  std::string address = options_.endpoint;
  const std::string amazon = absl::StrCat("s3.", options_.region, ".amazonaws.com");
  if (!address.empty()) {
    absl::StrAppend(&address, "/", bucket);
  } else if (absl::StrContains(bucket, '.')) {
    address = absl::StrCat("https://", amazon, "/", bucket);
  } else {
    address = absl::StrCat("https://", bucket, ".", amazon);
  }
  // No slash after the bucket: S3 ignores it, but some servers leave it out of the signature.
  if (!request.url.name.empty()) {
    absl::StrAppend(&address, "/", net::PercentEncode(request.url.name, /*keep_slash=*/true));
  }
  std::vector<std::string> query;
  for (const auto& [name, value] : request.query) {
    query.push_back(
        absl::StrCat(net::PercentEncode(name, false), "=", net::PercentEncode(value, false)));
  }
  std::sort(query.begin(), query.end());
  return absl::StrCat(address, query.empty() ? "" : "?", absl::StrJoin(query, "&"));
}

absl::StatusOr<net::Response> S3Client::Send(const S3Request& request) {
  for (bool again = false;; again = true) {
    MUSTER_ASSIGN_OR_RETURN(const AwsCredentials credentials, credentials_->Get());
    net::Request http{.method = request.method,
                      .url = AddressOf(request),
                      .headers = request.headers,
                      .body = request.body,
                      .sink = request.sink};
    http.signature =
        net::AwsSignature{options_.region, "s3", credentials.access_key, credentials.secret_key};
    http.headers.emplace_back("x-amz-content-sha256", base::Sha256Hex(request.body));
    if (!credentials.session_token.empty()) {
      http.headers.emplace_back("x-amz-security-token", credentials.session_token);
    }
    auto response = http_->Do(http);
    if (!response.ok()) return base::Annotate(response.status(), request.url.ToString());
    if (again || !absl::StrContains(response->body, "<Code>ExpiredToken</Code>")) return response;
    credentials_->Forget(credentials);
  }
}

absl::Status S3Client::ErrorOf(const Url& url, const net::Response& response) {
  if (response.ok()) return absl::OkStatus();
  const auto xml = ParseXml(response.body);
  const std::string code(xml.ok() ? xml->Text("Code") : "");
  const std::string name = url.ToString();
  if (code == "NoSuchBucket") return NoBucket(url);
  if (const std::string region = OtherRegion(response, code); !region.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": the bucket is in another region; set AWS_REGION=", net::ServerMessage(region)));
  }
  if (response.status == 404) return Absent(url);
  if (response.status == 412) return Exists(url);
  for (const ErrorMeaning& meaning : kErrorMeanings) {
    if (meaning.code != code) continue;
    return absl::Status(meaning.status, absl::StrCat(name, ": ", meaning.advice, " (", code, ")"));
  }
  const absl::Status status = net::StatusOf(response);
  const std::string words = xml.ok() ? net::ServerMessage(xml->Text("Message")) : "";
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message(), code.empty() ? "" : ": ",
                                   net::ServerMessage(code), words.empty() ? "" : ": ", words));
}

absl::Status S3Client::Explain(const Url& url, const net::Response& response) {
  const S3Request list{.url = url.WithName(""),
                       .query = {{"list-type", "2"}, {"max-keys", "1"}, {"prefix", url.name}}};
  MUSTER_ASSIGN_OR_RETURN(const net::Response words, Send(list));
  return words.ok() ? ErrorOf(url, response) : ErrorOf(url, words);
}

}  // namespace muster::storage
