// WebHDFS in two steps: the namenode answers OPEN, CREATE and APPEND with 307 and the address of a
// datanode, which gets the data. All other operations need the namenode alone. If there are
// several namenodes (HA), one is active; the others answer with StandbyException. The client stays
// with the node that answered last and tries the next one when it fails:
//
//    Send:  node i ──ok──> done         ──standby, unavailable──> node i + 1
//           after a whole round without success: back off, then the next round
//
#include "storage/hdfs/client.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/utf8.h"
#include "base/users.h"
#include "storage/file_errors.h"
#include "storage/hdfs/site.h"

namespace muster::storage {
namespace {

constexpr int64_t kMaxToken = 64 << 10;

struct ExceptionMeaning {
  absl::string_view exception;
  absl::StatusCode status;
  absl::string_view advice;
};

// All others map to Unavailable: WebHDFS responds 403 to any kind of failure.
constexpr ExceptionMeaning kExceptionMeanings[] = {
    {"AccessControlException", absl::StatusCode::kPermissionDenied,
     "this user lacks the permission; set HADOOP_USER_NAME, or ask the owner for it"},
    {"AuthorizationException", absl::StatusCode::kPermissionDenied,
     "this user lacks the permission; ask the cluster's administrator for it"},
    {"SecurityException", absl::StatusCode::kUnauthenticated,
     "the cluster rejected the user or token; set HADOOP_USER_NAME or MUSTER_HDFS_TOKEN"},
    {"InvalidToken", absl::StatusCode::kUnauthenticated,
     "the token is invalid or has expired; set a new one in MUSTER_HDFS_TOKEN"},
    {"FileAlreadyExistsException", absl::StatusCode::kAlreadyExists, "already exists"},
    {"ParentNotDirectoryException", absl::StatusCode::kFailedPrecondition,
     "a parent is a file, not a folder; choose another name"},
    {"PathIsNotEmptyDirectoryException", absl::StatusCode::kFailedPrecondition,
     "the folder is not empty"},
    {"StandbyException", absl::StatusCode::kUnavailable,
     "this namenode is a standby; name the active one, or all of them in MUSTER_HDFS_NAMENODES"},
    {"SafeModeException", absl::StatusCode::kUnavailable,
     "the namenode is in safe mode; wait until it leaves safe mode (hdfs dfsadmin -safemode get)"},
    {"RetriableException", absl::StatusCode::kUnavailable, "the namenode is not ready; try again"},
    {"AlreadyBeingCreatedException", absl::StatusCode::kUnavailable,
     "another client is still writing it; try again"},
    {"RecoveryInProgressException", absl::StatusCode::kUnavailable,
     "HDFS is still recovering it; try again"},
    {"DSQuotaExceededException", absl::StatusCode::kResourceExhausted,
     "the folder's space quota is exceeded; delete files, or raise it"},
    {"NSQuotaExceededException", absl::StatusCode::kResourceExhausted,
     "the folder's file quota is exceeded; delete files, or raise it"},
    {"QuotaExceededException", absl::StatusCode::kResourceExhausted,
     "the folder's quota is exceeded; delete files, or raise it"},
    {"InvalidPathException", absl::StatusCode::kInvalidArgument,
     "HDFS does not allow this name (for example a colon); choose another"},
    {"PathComponentTooLongException", absl::StatusCode::kInvalidArgument,
     "the name is too long; choose another"},
    {"UnsupportedOperationException", absl::StatusCode::kUnimplemented,
     "this server does not support the operation"},
    {"IllegalArgumentException", absl::StatusCode::kInvalidArgument,
     "the server rejected the request as malformed"},
};

absl::Status NotWebHdfs(const Url& url, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      url.ToString(), ": ", what, "; use the port of the namenode's web server, by default 9870 ",
      "(dfs.namenode.http-address)"));
}

// Hadoop's RPC server responds to an HTTP GET with this text.
bool IsRpcServer(const net::Response& response) {
  return absl::StrContains(response.body, "Hadoop IPC port");
}

// Returns whether another namenode, or this one later, may serve the request.
bool IsNotReady(const absl::StatusOr<net::Response>& response) {
  if (!response.ok() || response->ok()) return false;
  const auto exception = ParseHdfsException(response->body);
  return exception.has_value() &&
         (exception->name == "StandbyException" || exception->name == "RetriableException");
}

bool IsUnavailable(const absl::StatusOr<net::Response>& response) {
  if (!response.ok()) return absl::IsUnavailable(response.status());
  return response->status >= 400 && absl::IsUnavailable(net::StatusOf(*response));
}

// Rejects names that a server could normalize to another name.
absl::Status CheckName(const Url& url) {
  if (!base::IsUtf8(url.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat(base::Printable(url.ToString()), ": names in HDFS must be UTF-8"));
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(url.name, '/');
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if ((parts[i].empty() && !last) || parts[i] == "." || parts[i] == "..") {
      return absl::InvalidArgumentError(absl::StrCat(
          url.ToString(), ": a component of the name is empty, '.' or '..', which HDFS rejects"));
    }
  }
  return absl::OkStatus();
}

// Returns "host:port" of a URL. The rest may contain a token.
std::string ServerOf(absl::string_view url) {
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  return net::ServerMessage(url.substr(0, url.find_first_of("/?#")));
}

absl::Status ParseNamenodes(absl::string_view text, HdfsOptions& options) {
  for (const absl::string_view cluster : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(cluster, absl::MaxSplits('=', 1));
    auto& nodes = options.namenodes[parts.first];
    nodes = absl::StrSplit(parts.second, ',', absl::SkipEmpty());
    if (parts.first.empty() || nodes.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("MUSTER_HDFS_NAMENODES contains '",
                                                     net::ServerMessage(cluster),
                                                     "'; expected cluster=host:9870,host:9870"));
    }
  }
  return absl::OkStatus();
}

// Adds the settings of Hadoop's own configuration, unless they are set already. A configuration
// that cannot be used is an error only for URLs that need it.
void AddSite(const std::string& folder, std::optional<bool> https, HdfsOptions& options) {
  constexpr char kRemedy[] = "write hdfs://host:9870/path, with the namenode's web server";
  if (folder.empty()) {
    options.default_authority = absl::FailedPreconditionError(
        absl::StrCat("names no namenode, and HADOOP_CONF_DIR is not set; set it to the folder of ",
                     "core-site.xml, or ", kRemedy));
    return;
  }
  auto site = ReadHadoopSite(folder, https);
  if (!site.ok()) {
    options.default_authority = absl::FailedPreconditionError(
        absl::StrCat("names no namenode, and the configuration in HADOOP_CONF_DIR cannot be used: ",
                     site.status().message(), "; correct it, or ", kRemedy));
    return;
  }
  options.default_authority = std::move(site->default_authority);
  options.namenodes.merge(site->namenodes);
  options.https = site->https;
}

}  // namespace

absl::StatusOr<HdfsOptions> HdfsOptions::FromVariables(const base::Variables& variables) {
  HdfsOptions options;
  options.user = variables("HADOOP_USER_NAME");
  if (options.user.empty()) options.user = base::NameOfThisUser();
  options.token = variables("MUSTER_HDFS_TOKEN");
  options.token_file = variables("MUSTER_HDFS_TOKEN_FILE");
  const std::string https = variables("MUSTER_HDFS_HTTPS");
  if (!https.empty() && https != "true" && https != "false") {
    return absl::InvalidArgumentError(absl::StrCat(
        "MUSTER_HDFS_HTTPS is '", net::ServerMessage(https), "'; set it to true or false"));
  }
  options.https = https == "true";
  MUSTER_RETURN_IF_ERROR(ParseNamenodes(variables("MUSTER_HDFS_NAMENODES"), options));
  AddSite(variables("HADOOP_CONF_DIR"),
          https.empty() ? std::nullopt : std::optional<bool>(options.https), options);
  options.http = net::HttpOptions::FromEnvironment();
  return options;
}

absl::StatusOr<std::unique_ptr<HdfsClient>> HdfsClient::FromVariables(
    const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(HdfsOptions options, HdfsOptions::FromVariables(variables));
  MUSTER_ASSIGN_OR_RETURN(auto http, net::HttpClient::Create(options.http));
  return std::make_unique<HdfsClient>(std::move(options), std::move(http));
}

bool HdfsBackoff::Wait() {
  const net::RetryPolicy& policy = options_.retry;
  if (++done_ >= tries_) return false;
  const absl::Duration most =
      std::min(policy.max_delay, policy.first_delay * std::exp2(std::min(done_ - 1, 30)));
  std::random_device random;
  const absl::Duration delay = most * std::uniform_real_distribution<double>(0.5, 1)(random);
  if (options_.clock->Now() + delay > end_) return false;
  if (options_.sleep) {
    options_.sleep(delay);
  } else {
    absl::SleepFor(delay);
  }
  return true;
}

Url WithoutSlash(const Url& url) {
  if (url.name.size() < 2 || url.name.back() != '/') return url;
  return url.WithName(absl::string_view(url.name).substr(0, url.name.size() - 1));
}

bool IsAbsence(const net::Response& response) {
  if (response.ok()) return false;
  const auto exception = ParseHdfsException(response.body);
  return exception.has_value() && (exception->name == "FileNotFoundException" ||
                                   exception->name == "ParentNotDirectoryException");
}

absl::StatusOr<std::string> HdfsClient::Token() const {
  if (!options_.token.empty() || options_.token_file.empty()) return options_.token;
  auto token = base::ReadFile(options_.token_file, kMaxToken);
  if (!token.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot read the token that MUSTER_HDFS_TOKEN_FILE names: ", token.status().message()));
  }
  absl::StripAsciiWhitespace(&*token);
  return token;
}

absl::StatusOr<std::string> HdfsClient::QueryOf(const HdfsRequest& request) const {
  MUSTER_ASSIGN_OR_RETURN(const std::string token, Token());
  std::string query = absl::StrCat("?op=", request.op);
  const auto add = [&query](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&query, "&", name, "=", net::PercentEncode(value, /*keep_slash=*/false));
  };
  if (!token.empty()) {
    add("delegation", token);
  } else if (!options_.user.empty()) {
    add("user.name", options_.user);
  }
  for (const auto& [name, value] : request.query) add(name, value);
  return query;
}

absl::StatusOr<std::vector<std::string>> HdfsClient::NamenodesOf(const Url& url) const {
  if (url.authority.empty() && !options_.default_authority.ok()) {
    return base::Annotate(options_.default_authority.status(), url.ToString());
  }
  const std::string& authority =
      url.authority.empty() ? *options_.default_authority : url.authority;
  const auto found = options_.namenodes.find(authority);
  std::vector<std::string> nodes = {authority};
  if (found != options_.namenodes.end()) nodes = found->second;
  for (std::string& node : nodes) {
    const size_t colon = node.rfind(':');
    const size_t bracket = node.rfind(']');  // of an IPv6 address
    const bool has_port =
        colon != std::string::npos && (bracket == std::string::npos || bracket < colon);
    node = absl::StrCat(options_.https ? "https://" : "http://", node,
                        has_port         ? ""
                        : options_.https ? ":9871"
                                         : ":9870");
  }
  return nodes;
}

size_t HdfsClient::Preferred(const std::string& authority) {
  absl::MutexLock lock(&mutex_);
  return preferred_[authority];
}

void HdfsClient::Prefer(const std::string& authority, size_t node) {
  absl::MutexLock lock(&mutex_);
  preferred_[authority] = node;
}

// Adds the likely cause to the error of a request without a response.
absl::Status HdfsClient::Explain(const Url& url, const absl::Status& status) const {
  if (absl::StrContains(status.message(), "HTTP/0.9")) {
    return NotWebHdfs(url, "the server there does not speak HTTP");
  }
  const bool rpc =
      !options_.namenodes.contains(url.authority) &&
      (absl::EndsWith(url.authority, ":8020") || absl::EndsWith(url.authority, ":9000"));
  const absl::string_view advice =
      rpc ? "; this is usually Hadoop's RPC port; use that of the web server, by default 9870" : "";
  return absl::Status(status.code(), absl::StrCat(url.ToString(), ": ", status.message(), advice));
}

absl::StatusOr<net::Response> HdfsClient::Send(const HdfsRequest& request) {
  MUSTER_RETURN_IF_ERROR(CheckName(request.url));
  MUSTER_ASSIGN_OR_RETURN(const std::string query, QueryOf(request));
  const std::string path =
      absl::StrCat("/webhdfs/v1",
                   net::PercentEncode(WithoutSlash(request.url).name, /*keep_slash=*/true), query);
  const std::string& authority = request.url.authority;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> nodes, NamenodesOf(request.url));
  const bool several = nodes.size() > 1;
  HdfsBackoff backoff(options_.http, options_.http.retry.tries);
  for (size_t tries = 1;; ++tries) {
    const size_t node = Preferred(authority) % nodes.size();
    if (request.sink != nullptr) MUSTER_RETURN_IF_ERROR(request.sink->Rewind());
    auto response = http_->Do({.method = request.method,
                               .url = nodes[node] + path,
                               .sink = request.sink,
                               .max_response_bytes = request.max_response_bytes,
                               // With several namenodes the loop retries on the next one, not the
                               // HTTP client on the same.
                               .idempotent = !several});
    // The HTTP client has already retried a single namenode, except one that is not ready.
    const bool next = IsNotReady(response) || (several && IsUnavailable(response));
    if (next && several) Prefer(authority, node + 1);
    const bool round = tries % nodes.size() == 0;
    if (next && (!round || backoff.Wait())) continue;
    if (response.ok()) return response;
    return Explain(request.url, response.status());
  }
}

absl::StatusOr<net::Response> HdfsClient::Transfer(const HdfsRequest& request) {
  HdfsRequest first = request;
  // WebHDFS requires that no data is sent before the redirect.
  first.body = "";
  MUSTER_ASSIGN_OR_RETURN(net::Response named, Send(first));
  // An HttpFS gateway serves reads without a redirect.
  if (named.ok() && request.sink != nullptr) return named;
  const std::string location(named.Header("Location"));
  if (named.status < 300 || named.status >= 400 || location.empty()) {
    MUSTER_RETURN_IF_ERROR(ErrorOf(request.url, named));
    return NotWebHdfs(request.url, "the namenode did not redirect to a datanode");
  }
  const bool https = absl::StartsWithIgnoreCase(location, "https://");
  if (!https && (options_.https || !absl::StartsWithIgnoreCase(location, "http://"))) {
    return absl::FailedPreconditionError(
        absl::StrCat(request.url.ToString(), ": the namenode redirected to ", ServerOf(location),
                     ", which is not an https datanode; see dfs.http.policy"));
  }
  if (request.sink != nullptr) MUSTER_RETURN_IF_ERROR(request.sink->Rewind());
  net::Request second{.method = request.method,
                      .url = location,
                      .body = request.body,
                      .sink = request.sink,
                      .idempotent = false};
  if (request.method != "GET") {
    second.headers.emplace_back("Content-Type", "application/octet-stream");
  }
  auto response = http_->Do(second);
  if (!response.ok()) {
    return base::Annotate(response.status(), absl::StrCat(request.url.ToString(), ": the datanode ",
                                                          ServerOf(location)));
  }
  MUSTER_RETURN_IF_ERROR(ErrorOf(request.url, *response));
  return response;
}

absl::Status HdfsClient::ErrorOf(const Url& url, const net::Response& response) const {
  if (response.ok()) return absl::OkStatus();
  const std::string name = url.ToString();
  const absl::Status status = net::StatusOf(response);
  const auto exception = ParseHdfsException(response.body);
  if (!exception.has_value()) {
    if (IsRpcServer(response)) return NotWebHdfs(url, "this is Hadoop's RPC port");
    if (response.status == 401) {
      return absl::UnauthenticatedError(
          absl::StrCat(name, ": the cluster requires Kerberos; get a delegation token and set ",
                       "MUSTER_HDFS_TOKEN (see docs/storage.md)"));
    }
    const bool redirects = response.status < 400;
    if (!redirects && (absl::IsUnavailable(status) || absl::IsResourceExhausted(status))) {
      return base::Annotate(status, name);
    }
    return NotWebHdfs(url,
                      absl::StrCat("the server there is not WebHDFS (HTTP ", response.status, ")"));
  }
  if (exception->name == "FileNotFoundException") return Absent(url);
  // Some servers quote the token in their message.
  const std::string token = Token().value_or("");
  const bool secret = !token.empty() && absl::StrContains(exception->message, token);
  const std::string words = secret ? "" : net::ServerMessage(exception->message);
  const auto* meaning = std::find_if(std::begin(kExceptionMeanings), std::end(kExceptionMeanings),
                                     [&](const auto& m) { return m.exception == exception->name; });
  if (meaning != std::end(kExceptionMeanings)) {
    return absl::Status(meaning->status,
                        absl::StrCat(name, ": ", meaning->advice, " (", meaning->exception,
                                     words.empty() ? "" : ": ", words, ")"));
  }
  return absl::UnavailableError(absl::StrCat(name, ": the server responded ",
                                             net::ServerMessage(exception->name),
                                             words.empty() ? "" : ": ", words));
}

absl::StatusOr<HdfsStatus> HdfsClient::Lookup(const Url& url) {
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, Send({.url = url, .op = "GETFILESTATUS"}));
  if (IsAbsence(response)) return Absent(url);
  MUSTER_RETURN_IF_ERROR(ErrorOf(url, response));
  const auto status = ParseHdfsStatus(response.body);
  if (!status.ok()) return NotWebHdfs(url, "the server there is not WebHDFS");
  return status;
}

absl::StatusOr<bool> HdfsClient::MakeFolder(const Url& url) {
  const auto there = Lookup(url);
  if (there.ok() && there->kind == HdfsStatus::Kind::kFolder) return false;
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          Send({.method = "PUT", .url = url, .op = "MKDIRS"}));
  MUSTER_RETURN_IF_ERROR(ErrorOf(url, response));
  return true;
}

absl::Status HdfsClient::Rename(const Url& from, const HdfsStatus& file, const Url& to,
                                IfExists if_exists) {
  const bool replace = if_exists == IfExists::kReplace;
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          Send({.method = "PUT",
                                .url = from,
                                .op = "RENAME",
                                .query = {{"destination", to.name},
                                          {"renameoptions", replace ? "OVERWRITE" : "NONE"}}}));
  const absl::Status status = ErrorOf(to, response);
  const bool refused = ParseHdfsBoolean(response.body) == false;
  if (status.ok() && !refused) return absl::OkStatus();
  // An earlier attempt may have succeeded although its response was lost.
  const auto there = Lookup(to);
  if (there.ok() && there->IsSame(file)) return absl::OkStatus();
  if (there.ok() && there->kind == HdfsStatus::Kind::kFolder) return NotAFileName(to);
  if (there.ok() && !replace) return Exists(to);
  if (!status.ok()) return status;
  return absl::UnimplementedError(absl::StrCat(
      to.ToString(), ": this server cannot replace a file atomically (an HttpFS gateway?); use ",
      "the namenode's own WebHDFS"));
}

}  // namespace muster::storage
