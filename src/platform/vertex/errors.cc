#include "platform/vertex/errors.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"

namespace muster::vertex {
namespace {

struct ErrorBody {
  std::string message;
  std::string status;  // "RESOURCE_EXHAUSTED"
  std::string reason;  // "SERVICE_DISABLED", from the details
};

ErrorBody ReadErrorBody(absl::string_view body) {
  const nlohmann::json json = base::ParseJson(body);
  if (!json.is_object() || !json.contains("error")) return {};
  const nlohmann::json& error = json["error"];
  ErrorBody refusal{.message = base::TextMember(error, "message"),
                    .status = base::TextMember(error, "status")};
  if (!error.is_object() || !error.contains("details") || !error["details"].is_array()) {
    return refusal;
  }
  for (const nlohmann::json& detail : error["details"]) {
    if (refusal.reason.empty()) refusal.reason = base::TextMember(detail, "reason");
  }
  return refusal;
}

std::string ApiOf(const Attempt& attempt) {
  return attempt.service == kLoggingService ? "logging.googleapis.com"
                                            : "aiplatform.googleapis.com";
}

std::string RoleOf(const Attempt& attempt) {
  return attempt.service == kLoggingService ? "roles/logging.viewer" : "roles/aiplatform.user";
}

bool IsDisabledApi(const ErrorBody& refusal) {
  return refusal.reason == "SERVICE_DISABLED" ||
         absl::StrContains(refusal.message, "is disabled") ||
         absl::StrContains(refusal.message, "has not been used in project");
}

std::string NotAllowed(const Attempt& attempt) {
  return absl::StrCat("these credentials lack the permission ", attempt.permission, " in project ",
                      attempt.project, "; the role ", RoleOf(attempt),
                      " has it: gcloud projects add-iam-policy-binding ", attempt.project,
                      " --member=", attempt.member, " --role=", RoleOf(attempt));
}

std::string MissingActAs(const Attempt& attempt) {
  return absl::StrCat("these credentials may not start jobs that run as the service account ",
                      "ACCOUNT, named in parentheses at the end: gcloud iam service-accounts ",
                      "add-iam-policy-binding ACCOUNT --project=", attempt.project,
                      " --member=", attempt.member, " --role=roles/iam.serviceAccountUser");
}

std::string NoBilling(const Attempt& attempt) {
  return absl::StrCat("billing is disabled in project ", attempt.project,
                      ": gcloud billing projects ", "link ", attempt.project,
                      " --billing-account=ACCOUNT, which `gcloud billing ", "accounts list` names");
}

std::string OverQuota(const Attempt& attempt) {
  const std::string seen = absl::StrCat(
      "the quota of project ", attempt.project, attempt.region.empty() ? "" : " in ",
      attempt.region,
      " is exhausted; view it with `gcloud alpha services quota list --service=", ApiOf(attempt),
      " --consumer=projects/", attempt.project, "`, request more at ",
      "https://console.cloud.google.com/iam-admin/quotas, or ");
  return absl::StrCat(seen, attempt.service == kLoggingService
                                ? "poll less often with --polling-interval"
                                : "use another region, or fewer or other machines");
}

// Returns true if the service itself reports that this job does not exist. A 404 of a proxy, or of
// a project that is temporarily not visible, is no verdict on a job.
bool IsAboutJob(const Attempt& attempt, const ErrorBody& refusal) {
  return !attempt.job.empty() && refusal.status == "NOT_FOUND" &&
         absl::StrContains(refusal.message, attempt.job);
}

absl::Status Forbidden(const Attempt& attempt, const ErrorBody& refusal) {
  if (refusal.reason == "BILLING_DISABLED") {
    return absl::FailedPreconditionError(NoBilling(attempt));
  }
  if (IsDisabledApi(refusal)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the API is not enabled in project ", attempt.project, ": gcloud services enable ",
        ApiOf(attempt), " --project=", attempt.project, "; it takes a few minutes"));
  }
  if (absl::StrContains(absl::AsciiStrToLower(refusal.message), "iam.serviceaccounts.actas")) {
    return absl::PermissionDeniedError(MissingActAs(attempt));
  }
  return absl::PermissionDeniedError(NotAllowed(attempt));
}

}  // namespace

absl::Status ErrorOf(const Attempt& attempt, const net::Response& response) {
  const ErrorBody refusal = ReadErrorBody(response.body);
  const absl::Status plain = net::StatusOf(response);
  const absl::Status forbidden = Forbidden(attempt, refusal);
  const auto error = [&](absl::StatusCode code, absl::string_view what) {
    return absl::Status(
        code,
        absl::StrCat(attempt.service, ": ", what, refusal.message.empty() ? "" : " (",
                     net::ServerMessage(refusal.message), refusal.message.empty() ? "" : ")"));
  };
  switch (response.status) {
    case 401:
      return error(
          absl::StatusCode::kUnauthenticated,
          "the credentials were rejected; create a new key for the service account, or sign in "
          "with `gcloud auth application-default login`");
    case 403:
      return error(forbidden.code(), forbidden.message());
    case 404:
      if (IsAboutJob(attempt, refusal)) {
        return error(absl::StatusCode::kNotFound, "there is no such job");
      }
      return error(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("there is no project ", attempt.project,
                                attempt.region.empty() ? "" : ", or no region ", attempt.region));
    case 429:
      return error(absl::StatusCode::kResourceExhausted, OverQuota(attempt));
    case 400:
      return error(absl::StatusCode::kFailedPrecondition, "the request was rejected");
    default:
      return error(plain.code(), plain.message());
  }
}

}  // namespace muster::vertex
