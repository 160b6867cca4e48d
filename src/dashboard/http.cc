#include "dashboard/http.h"

namespace muster::dashboard {
namespace {

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
      return 409;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

Response JsonResponse(const nlohmann::json& json) {
  return {.type = "application/json; charset=utf-8",
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

Response ErrorResponse(int status, absl::string_view code, absl::string_view message) {
  Response response =
      JsonResponse({{"error", {{"code", std::string(code)}, {"message", std::string(message)}}}});
  response.status = status;
  return response;
}

Response ErrorResponse(const absl::Status& error) {
  return ErrorResponse(HttpStatusOf(error.code()), absl::StatusCodeToString(error.code()),
                       error.message());
}

}  // namespace muster::dashboard
