#include "storage/s3/credentials.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "net/http.h"
#include "storage/s3/profile.h"

namespace muster::storage {
namespace {

// Amazon provides new credentials at least five minutes before the old ones expire.
constexpr absl::Duration kBeforeExpiry = absl::Minutes(5);
constexpr char kContainerHost[] = "http://169.254.170.2";
constexpr char kInstanceHost[] = "http://169.254.169.254";

// Credentials are sent in headers, so they must not contain a line break.
absl::Status Check(const AwsCredentials& credentials, absl::string_view origin) {
  for (const std::string* part :
       {&credentials.access_key, &credentials.secret_key, &credentials.session_token}) {
    if (!net::FitsHeader(*part)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the credentials from ", origin, " contain a space or a line break"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AwsCredentials> ParseCredentials(absl::string_view text, absl::string_view origin) {
  const nlohmann::json json = base::ParseJson(text);
  if (!json.is_object()) {
    return absl::UnauthenticatedError(absl::StrCat(origin, " did not return a JSON object"));
  }
  AwsCredentials credentials{.access_key = base::TextMember(json, "AccessKeyId"),
                             .secret_key = base::TextMember(json, "SecretAccessKey"),
                             .session_token = base::TextMember(json, "Token")};
  std::string error;
  const std::string expires = base::TextMember(json, "Expiration");
  const bool dated =
      expires.empty() || absl::ParseTime(absl::RFC3339_full, expires, &credentials.expires, &error);
  if (credentials.access_key.empty() || credentials.secret_key.empty() || !dated) {
    return absl::UnauthenticatedError(absl::StrCat(origin, " returned no usable credentials"));
  }
  return credentials;
}

}  // namespace

AwsCredentialChain::AwsCredentialChain(base::Variables variables, const base::Clock& clock)
    : variables_(std::move(variables)),
      cache_([this] { return FindCredentials(); }, kBeforeExpiry, clock) {}

absl::StatusOr<AwsCredentials> AwsCredentialChain::FindCredentials() {
  Found found = FromVariables();
  absl::string_view origin = "the environment";
  if (found.ok() && !found->has_value()) {
    found = FromProfile();
    origin = "the AWS profile";
  }
  if (found.ok() && !found->has_value()) {
    found = FromContainer();
    origin = "the container's agent";
  }
  if (found.ok() && !found->has_value()) {
    found = FromInstance();
    origin = "the instance's metadata";
  }
  MUSTER_RETURN_IF_ERROR(found.status());
  if (!found->has_value()) {
    return absl::UnauthenticatedError(
        "no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put a profile "
        "into ~/.aws/credentials and name it in AWS_PROFILE; see docs/storage.md");
  }
  MUSTER_RETURN_IF_ERROR(Check(**found, origin));
  (*found)->origin = std::string(origin);
  return **std::move(found);
}

AwsCredentialChain::Found AwsCredentialChain::FromVariables() const {
  AwsCredentials credentials{.access_key = variables_("AWS_ACCESS_KEY_ID"),
                             .secret_key = variables_("AWS_SECRET_ACCESS_KEY"),
                             .session_token = variables_("AWS_SESSION_TOKEN")};
  if (credentials.access_key.empty() && credentials.secret_key.empty()) return std::nullopt;
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return absl::UnauthenticatedError(
        absl::StrCat(credentials.access_key.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                     " is not set, although the other of the pair is"));
  }
  return credentials;
}

AwsCredentialChain::Found AwsCredentialChain::FromProfile() const {
  MUSTER_ASSIGN_OR_RETURN(const Profile profile, ReadProfile(variables_));
  AwsCredentials credentials{.access_key = profile.Get("aws_access_key_id"),
                             .secret_key = profile.Get("aws_secret_access_key"),
                             .session_token = profile.Get("aws_session_token")};
  if (!credentials.access_key.empty() && !credentials.secret_key.empty()) return credentials;
  for (const char* key : {"role_arn", "sso_start_url", "sso_session", "credential_process"}) {
    if (profile.Get(key).empty()) continue;
    return absl::UnauthenticatedError(
        absl::StrCat("the profile '", profile.name, "' uses ", key,
                     ", which muster does not support; set the variables that `aws configure ",
                     "export-credentials --format env` prints"));
  }
  return std::nullopt;
}

AwsCredentialChain::Found AwsCredentialChain::FromContainer() {
  std::string url = variables_("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const std::string relative = variables_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!relative.empty()) url = absl::StrCat(kContainerHost, relative);
  if (url.empty()) return std::nullopt;
  std::string token = variables_("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = variables_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(token, base::ReadFile(file, 1 << 16));
    token = std::string(absl::StripAsciiWhitespace(token));
  }
  net::Headers headers;
  if (!token.empty()) headers.emplace_back("Authorization", token);
  const auto answer = service_.Send("GET", url, headers);
  if (!answer.ok()) return base::Annotate(answer.status(), "the container's agent for credentials");
  return ParseCredentials(answer->body, "the container's agent for credentials");
}

AwsCredentialChain::Found AwsCredentialChain::FromInstance() {
  if (absl::EqualsIgnoreCase(variables_("AWS_EC2_METADATA_DISABLED"), "true")) return std::nullopt;
  std::string host = variables_("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (host.empty()) host = kInstanceHost;
  while (absl::EndsWith(host, "/")) host.pop_back();
  // Errors mean that there are no credentials here: most machines have no such service.
  const auto token = service_.Send("PUT", absl::StrCat(host, "/latest/api/token"),
                                   {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}});
  if (!token.ok()) return std::nullopt;
  const net::Headers headers = {{"X-aws-ec2-metadata-token", token->body}};
  const std::string folder = absl::StrCat(host, "/latest/meta-data/iam/security-credentials/");
  const auto roles = service_.Send("GET", folder, headers);
  if (!roles.ok()) return std::nullopt;
  const absl::string_view role = absl::string_view(roles->body).substr(0, roles->body.find('\n'));
  const auto answer = service_.Send("GET", absl::StrCat(folder, role), headers);
  if (!answer.ok()) return base::Annotate(answer.status(), "the instance's metadata");
  return ParseCredentials(answer->body, "the instance's metadata");
}

}  // namespace muster::storage
