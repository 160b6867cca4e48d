#include "k8s/error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "k8s/encoding.h"

namespace muster::k8s {
namespace {

constexpr char kPayload[] = "muster.k8s.Status";
constexpr char kUnknownResource[] = "UnknownResource";  // not a reason of Kubernetes
constexpr int kMaxMessageLength = 1000;
// The longest delay that a server can impose.
constexpr int64_t kMaxSeconds = 24 * 3600;

bool HasReason(const absl::Status& status, std::initializer_list<absl::string_view> reasons) {
  const auto error = ApiErrorOf(status);
  return error.has_value() &&
         std::find(reasons.begin(), reasons.end(), error->reason) != reasons.end();
}

// The reason for a response without one, for example of a proxy.
std::string ReasonOf(int code) {
  switch (code) {
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    default:
      return "";
  }
}

absl::StatusCode CodeOf(int code, absl::string_view reason) {
  if (reason == kUnknownResource) return absl::StatusCode::kUnimplemented;
  switch (code) {
    case 405:
      return absl::StatusCode::kUnimplemented;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                       : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 413:
    case 415:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    default:
      return net::StatusOf({.status = code}).code();
  }
}

// Returns the missing rule in the syntax of a Role.
std::string MissingRule(const ApiRequest& request) {
  const std::string& where = request.key.ns;
  return absl::StrCat("; missing RBAC rule: {apiGroups: [\"", request.kind.group,
                      "\"], resources: [\"", request.Resource(), "\"], verbs: [\"", request.verb,
                      "\"]}, in a ",
                      where.empty() ? "ClusterRole bound by a ClusterRoleBinding"
                                    : absl::StrCat("Role of namespace '", where, "'"));
}

std::string AdviceOf(const ApiRequest& request, const ApiError& error, absl::string_view message) {
  if (error.reason == kUnknownResource && !request.kind.kind.empty()) {
    return absl::StrCat("; the cluster has no ", request.kind.plural, " of ",
                        request.kind.ApiVersion(), ": is their CRD installed?");
  }
  // Admission controllers also return 403, with other messages.
  const bool by_rbac = absl::StrContains(message, absl::StrCat("cannot ", request.verb));
  if (error.code == 403 && by_rbac) return MissingRule(request);
  return "";
}

nlohmann::json ToJson(const ApiError& error) {
  nlohmann::json causes = nlohmann::json::array();
  for (const auto& [field, message] : error.causes) causes.push_back({field, message});
  nlohmann::json json = {{"code", error.code}, {"reason", error.reason}, {"causes", causes}};
  if (error.retry_after) json["retry"] = absl::ToInt64Seconds(*error.retry_after);
  return json;
}

ApiError Read(int code, const Json& status) {
  ApiError error{.code = code, .reason = TextAt(status, "/reason")};
  if (error.reason.empty()) error.reason = ReasonOf(code);
  const Json* causes = Find(status, "/details/causes");
  if (causes != nullptr && causes->is_array()) {
    for (const Json& cause : *causes) {
      error.causes.push_back({TextAt(cause, "/field"), TextAt(cause, "/message")});
    }
  }
  const Json* seconds = Find(status, "/details/retryAfterSeconds");
  if (seconds != nullptr && seconds->is_number_integer()) {
    error.retry_after = absl::Seconds(std::clamp<int64_t>(seconds->get<int64_t>(), 0, kMaxSeconds));
  }
  // A 404 for an object has its name in the details; one for an unknown kind has not.
  const bool named = !TextAt(status, "/details/name").empty();
  if (code == 404 && !named) error.reason = kUnknownResource;
  return error;
}

absl::Status MakeStatus(const ApiRequest& request, const ApiError& error,
                        absl::string_view message) {
  const std::string words = message.empty()
                                ? absl::StrCat("the server returned HTTP ", error.code)
                                : base::Ellipsize(base::Printable(message), kMaxMessageLength);
  absl::Status status(
      CodeOf(error.code, error.reason),
      absl::StrCat("cannot ", request.Describe(), ": ", words, AdviceOf(request, error, message)));
  status.SetPayload(kPayload, absl::Cord(ToJson(error).dump(
                                  -1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return status;
}

}  // namespace

std::optional<ApiError> ApiErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return std::nullopt;
  const Json json = base::ParseJson(std::string(*payload));
  if (!json.is_object()) return std::nullopt;
  ApiError error{.code = json.value("code", 0), .reason = json.value("reason", "")};
  for (const Json& cause : json["causes"]) error.causes.push_back({cause[0], cause[1]});
  if (json.contains("retry")) error.retry_after = absl::Seconds(json["retry"].get<int64_t>());
  return error;
}

bool IsNoSuchObject(const absl::Status& status) { return HasReason(status, {"NotFound"}); }
bool IsExistingObject(const absl::Status& status) { return HasReason(status, {"AlreadyExists"}); }
bool IsConflict(const absl::Status& status) { return HasReason(status, {"Conflict"}); }
bool IsGone(const absl::Status& status) { return HasReason(status, {"Gone", "Expired"}); }
bool IsForbidden(const absl::Status& status) { return HasReason(status, {"Forbidden"}); }
bool IsInvalid(const absl::Status& status) { return HasReason(status, {"Invalid"}); }
bool IsUnknownResource(const absl::Status& status) { return HasReason(status, {kUnknownResource}); }

absl::Status ErrorOf(const ApiRequest& request, int code, const nlohmann::json& status) {
  return MakeStatus(request, Read(code, status), TextAt(status, "/message"));
}

absl::Status ErrorOf(const ApiRequest& request, const net::Response& response) {
  const Json status = ParseObject(response.body);
  ApiError error = Read(response.status, status);
  const auto asked = net::ParseRetryAfter(response.Header("Retry-After"), absl::Now());
  if (asked.has_value()) error.retry_after = std::min(*asked, absl::Seconds(kMaxSeconds));
  return MakeStatus(request, error, TextAt(status, "/message"));
}

}  // namespace muster::k8s
