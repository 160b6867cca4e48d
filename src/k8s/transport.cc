#include "k8s/transport.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "k8s/error.h"

namespace muster::k8s {
namespace {

std::string MethodOf(absl::string_view verb) {
  if (verb == "create") return "POST";
  if (verb == "update") return "PUT";
  if (verb == "patch") return "PATCH";
  if (verb == "delete") return "DELETE";
  return "GET";
}

// Returns the Accept header. It prefers protobuf for the objects that encoding.h decodes; servers
// without protobuf, such as those of custom resources, send JSON.
std::string AcceptOf(const ApiRequest& request) {
  constexpr char kJson[] = "application/json", kProtobuf[] = "application/vnd.kubernetes.protobuf";
  if (request.detail == Detail::kMetadata) {
    const std::string partial = absl::StrCat(
        ";as=PartialObjectMetadata", request.verb == "list" ? "List" : "", ";v=v1;g=meta.k8s.io,");
    return absl::StrCat(kProtobuf, partial, kJson, partial, kJson);
  }
  const bool is_pod = request.kind.group.empty() && request.kind.kind == kPods.kind;
  if (request.detail == Detail::kStatus && is_pod) return absl::StrCat(kProtobuf, ",", kJson);
  return request.sink != nullptr ? "*/*" : kJson;
}

// Returns the status with text appended to its message.
absl::Status WithSuffix(const absl::Status& status, absl::string_view text) {
  absl::Status extended(status.code(), absl::StrCat(status.message(), text));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    extended.SetPayload(type, payload);
  });
  return extended;
}

// Returns the text of a warning header: `299 - "text"`.
std::string WarningText(absl::string_view header) {
  const size_t begin = header.find('"');
  const size_t end = header.rfind('"');
  if (begin == absl::string_view::npos || end <= begin) return net::ServerMessage(header);
  const absl::string_view quoted = header.substr(begin + 1, end - begin - 1);
  return net::ServerMessage(absl::StrReplaceAll(quoted, {{"\\\"", "\""}, {"\\\\", "\\"}}));
}

}  // namespace

Transport::Transport(ClusterConfig config, ClientOptions options,
                     std::unique_ptr<net::HttpClient> http)
    : config_(std::move(config)),
      options_(std::move(options)),
      http_(std::move(http)),
      credentials_(config_, *options_.http.clock, options_.plugin_timeout),
      limit_(options_.requests_per_second, options_.burst) {}

absl::StatusOr<net::Response> Transport::Send(const ApiRequest& request) {
  MUSTER_ASSIGN_OR_RETURN(const std::string path, request.Path());
  return SendTo(path, request);
}

absl::StatusOr<net::Response> Transport::SendTo(const std::string& path,
                                                const ApiRequest& request) {
  const base::Clock& clock = *options_.http.clock;
  const absl::Time end = clock.Now() + request.call.timeout;
  if (const auto waited = limit_.Wait(request.call.timeout, request.call.stop); !waited.ok()) {
    return AddAdvice(request, waited);
  }
  auto credential = credentials_.Get();
  for (bool again = false;; again = true) {
    if (!credential.ok()) return credential.status();
    auto response = SendOnce(path, request, *credential, end - clock.Now());
    if (!response.ok()) return AddAdvice(request, response.status());
    Warn(*response);
    if (response->ok()) return response;
    if (response->status != 401 || again) return ResponseError(request, *response);
    // A 401 may mean that the credential has been rotated: load it again and retry once.
    credentials_.Forget(*credential);
    auto next = credentials_.Get();
    if (next.ok() && *next == *credential) return ResponseError(request, *response);
    credential = std::move(next);
  }
}

absl::StatusOr<net::Response> Transport::SendOnce(const std::string& path,
                                                  const ApiRequest& request,
                                                  const Credential& credential,
                                                  absl::Duration timeout) {
  const net::Tls tls{.authorities = config_.authorities,
                     .certificate = credential.certificate,
                     .key = credential.key,
                     .server_name = config_.tls_server_name};
  const bool streams = request.sink != nullptr;
  net::Request http{.method = MethodOf(request.verb),
                    .url = absl::StrCat(config_.server, path),
                    .headers = {{"Accept", AcceptOf(request)}},
                    .body = request.body,
                    .sink = request.sink,
                    .max_response_bytes = request.max_response_bytes,
                    // A stream is never retried here: part of it has been handled, and only its
                    // consumer can continue after the last event or line.
                    .idempotent = request.idempotent && !streams,
                    .retry_when_rejected = !streams,
                    .total_timeout = streams ? absl::InfiniteDuration() : timeout,
                    .idle_timeout = request.idle_timeout,
                    .tls = &tls,
                    .stop = request.call.stop};
  if (!request.body.empty()) http.headers.emplace_back("Content-Type", request.content_type);
  if (!credential.authorization.empty()) {
    http.headers.emplace_back("Authorization", credential.authorization);
  }
  const User& user = config_.user;
  if (!user.impersonate.empty()) http.headers.emplace_back("Impersonate-User", user.impersonate);
  for (const std::string& group : user.impersonate_groups) {
    http.headers.emplace_back("Impersonate-Group", group);
  }
  return http_->Do(http);
}

void Transport::Warn(const net::Response& response) const {
  if (!options_.on_warning) return;
  for (const auto& [name, value] : response.headers) {
    if (absl::EqualsIgnoreCase(name, "Warning")) options_.on_warning(WarningText(value));
  }
}

absl::Status Transport::AddAdvice(const ApiRequest& request, const absl::Status& status) const {
  const absl::Status what =
      base::Annotate(status, absl::StrCat("cannot ", request.Describe(), ": ", config_.server));
  if (absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "expired")) {
    return WithSuffix(
        what,
        "; the cluster's administrator must renew the server's certificate or its authority "
        "(kubeadm: `kubeadm certs renew`), or the clock of this machine is wrong");
  }
  if (absl::IsFailedPrecondition(status)) {
    return WithSuffix(what,
                      absl::StrCat("; the authority in 'certificate-authority' of ", config_.origin,
                                   " must be the one that signed the server's certificate"));
  }
  if (absl::IsUnavailable(status) && !request.idempotent) {
    return WithSuffix(what, "; the server may or may not have executed it");
  }
  return what;
}

absl::Status Transport::ResponseError(const ApiRequest& request,
                                      const net::Response& response) const {
  const absl::Status error = ErrorOf(request, response);
  if (response.status != 401) return error;
  return WithSuffix(
      error, absl::StrCat("; the server rejects the credentials of user '", config_.user.name,
                          "' (", config_.origin, "): sign in again or renew them"));
}

}  // namespace muster::k8s
