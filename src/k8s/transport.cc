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

// Protobuf for what can be read from it, where the server knows it.
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

// The same status with more to its message.
absl::Status Extended(const absl::Status& status, absl::string_view text) {
  absl::Status extended(status.code(), absl::StrCat(status.message(), text));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    extended.SetPayload(type, payload);
  });
  return extended;
}

// Of `299 - "text"` the text.
std::string WarningText(absl::string_view header) {
  const size_t begin = header.find('"');
  const size_t end = header.rfind('"');
  if (begin == absl::string_view::npos || end <= begin) return net::ServerWords(header);
  const absl::string_view quoted = header.substr(begin + 1, end - begin - 1);
  return net::ServerWords(absl::StrReplaceAll(quoted, {{"\\\"", "\""}, {"\\\\", "\\"}}));
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
  const Clock& clock = *options_.http.clock;
  const absl::Time end = clock.Now() + request.call.patience;
  if (const auto waited = limit_.Wait(request.call.patience, request.call.stop); !waited.ok()) {
    return Explain(request, waited);
  }
  auto credential = credentials_.Get();
  for (bool again = false;; again = true) {
    if (!credential.ok()) return credential.status();
    auto response = Try(path, request, *credential, end - clock.Now());
    if (!response.ok()) return Explain(request, response.status());
    Warn(*response);
    if (response->ok()) return response;
    if (response->status != 401 || again) return Refused(request, *response);
    credentials_.Forget(*credential);
    auto next = credentials_.Get();
    if (next.ok() && *next == *credential) return Refused(request, *response);
    credential = std::move(next);
  }
}

absl::StatusOr<net::Response> Transport::Try(const std::string& path, const ApiRequest& request,
                                             const Credential& credential,
                                             absl::Duration patience) {
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
                    .max_response_bytes = request.max_answer,
                    .repeatable = request.repeatable && !streams,
                    .repeat_when_refused = !streams,
                    .patience = streams ? absl::InfiniteDuration() : patience,
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

absl::Status Transport::Explain(const ApiRequest& request, const absl::Status& status) const {
  const absl::Status what =
      Annotate(status, absl::StrCat("cannot ", request.Describe(), ": ", config_.server));
  if (absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "expired")) {
    return Extended(what,
                    "; the server's certificate, or its authority's, is to be renewed by who runs "
                    "the cluster (kubeadm: `kubeadm certs renew`), or the clock here is wrong");
  }
  if (absl::IsFailedPrecondition(status)) {
    return Extended(what,
                    absl::StrCat("; the authority in 'certificate-authority' of ", config_.origin,
                                 " must be the one that signed the server's certificate"));
  }
  if (absl::IsUnavailable(status) && !request.repeatable) {
    return Extended(what, "; whether it was carried out is not known");
  }
  return what;
}

absl::Status Transport::Refused(const ApiRequest& request, const net::Response& response) const {
  const absl::Status error = ErrorOf(request, response);
  if (response.status != 401) return error;
  return Extended(
      error, absl::StrCat("; the server does not take the credentials of user '", config_.user.name,
                          "' (", config_.origin, "): sign in again, or renew them"));
}

}  // namespace muster::k8s
