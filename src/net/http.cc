#include "net/http.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/terminal_text.h"

namespace muster::net {
namespace {

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 401:
    case 407:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
    case 410:
      return absl::StatusCode::kNotFound;
    case 409:
      return absl::StatusCode::kAborted;
    case 412:
      return absl::StatusCode::kFailedPrecondition;
    case 416:
      return absl::StatusCode::kOutOfRange;
    case 429:
    case 507:
      return absl::StatusCode::kResourceExhausted;
    case 501:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::string_view Response::Header(absl::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, name);
  });
  return found == headers.end() ? "" : absl::string_view(found->second);
}

absl::Status StatusOf(const Response& response) {
  if (response.ok()) return absl::OkStatus();
  return absl::Status(
      CodeOf(response.status),
      absl::StrCat("the server returned HTTP ", response.status,
                   response.tries > 1 ? absl::StrCat(" after ", response.tries, " attempts") : ""));
}

bool IsRetryableStatus(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

bool IsSafeForSecrets(absl::string_view url) {
  if (absl::StartsWithIgnoreCase(url, "https://")) return true;
  if (!absl::ConsumePrefix(&url, "http://")) return false;
  absl::string_view host = url.substr(0, url.find_first_of("/?#"));
  if (absl::StrContains(host, '@')) return false;  // user@host: the real host comes after the @
  if (absl::StartsWith(host, "[")) return absl::StartsWith(host, "[::1]");
  host = host.substr(0, host.find(':'));
  // "127.0.0.1.example" is a host name, not loopback.
  const bool numeric = std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
  });
  return host == "localhost" || (numeric && absl::StartsWith(host, "127."));
}

bool FitsHeader(absl::string_view secret) {
  return std::none_of(secret.begin(), secret.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) || c == ' ';
  });
}

std::string ServerMessage(absl::string_view text) {
  return base::Ellipsize(base::Printable(text), 200);
}

std::string PercentEncode(absl::string_view text, bool keep_slash) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain || (c == '/' && keep_slash)) {
      encoded.push_back(c);
    } else {
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

std::optional<absl::Time> ParseHttpDate(absl::string_view value) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", value, absl::UTCTimeZone(), &time, &error)) {
    return time;
  }
  return std::nullopt;
}

std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::Time now) {
  int64_t seconds = 0;
  if (absl::SimpleAtoi(value, &seconds)) {
    return absl::Seconds(std::max<int64_t>(seconds, 0));
  }
  const auto time = ParseHttpDate(value);
  if (!time.has_value()) return std::nullopt;
  return std::max(*time - now, absl::ZeroDuration());
}

}  // namespace muster::net
