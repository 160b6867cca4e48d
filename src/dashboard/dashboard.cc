#include "dashboard/dashboard.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "dashboard/access.h"
#include "dashboard/api.h"
#include "dashboard/feed.h"
#include "dashboard/pages.h"
#include "dashboard/params.h"
#include "dashboard/prometheus.h"
#include "dashboard/server.h"

namespace muster::dashboard {
namespace {

constexpr absl::Duration kPing = absl::Seconds(15);  // shorter than the timeouts of proxies
constexpr char kStreamPath[] = "/api/stream";

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || absl::StartsWith(host, "127.");
}

std::string InUrl(const std::string& host) {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host;
}

absl::Status CheckOptions(const DashboardOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key belong together");
  }
  if (IsLoopback(options.host)) return absl::OkStatus();
  if (!options.certificate.empty() && !options.password.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "other machines can reach ", options.host,
      ", so --listen requires --tls-cert, --tls-key and --password-file; to reach a dashboard on "
      "this machine's loopback from another one, use `ssh -L`"));
}

// Returns one message of a stream of server-sent events.
std::string Message(absl::string_view event, absl::string_view data) {
  return absl::StrCat("event: ", event, "\ndata: ", data, "\n\n");
}

std::string MessagesOf(const FeedUpdate& update) {
  std::string text;
  if (!update.changed.empty() || !update.removed.empty()) {
    const nlohmann::json removed = update.removed;
    absl::StrAppend(
        &text, Message("jobs", absl::StrCat("{\"changed\":[", absl::StrJoin(update.changed, ","),
                                            "],\"removed\":", removed.dump(), "}")));
  }
  if (!update.details.empty()) absl::StrAppend(&text, Message("job", update.details));
  if (update.log_grew) absl::StrAppend(&text, Message("log", "{}"));
  if (update.metrics_grew) absl::StrAppend(&text, Message("metrics", "{}"));
  return text.empty() ? ": ping\n\n" : text;
}

}  // namespace

class Dashboard::Impl {
 public:
  Impl(DashboardOptions options, ServiceFactory services)
      : options_(std::move(options)), services_(std::move(services)), feed_(services_) {}
  ~Impl() {
    feed_.Stop();  // ends the streams, which the server waits for
    server_.reset();
  }

  absl::Status Start() {
    MUSTER_ASSIGN_OR_RETURN(
        server_,
        Server::Start({.host = options_.host,
                       .port = options_.port,
                       .certificate = options_.certificate,
                       .key = options_.key},
                      {.handle = [this](const Request& r) { return Handle(r); },
                       .is_stream = [this](const Request& r) { return IsStream(r); },
                       .stream = [this](const Request& r, StreamWriter& w) { Stream(r, w); }}));
    const absl::MutexLock lock(&mutex_);
    const int port = server_->port();
    AccessOptions access{.cookie = absl::StrCat("muster_session_", port),  // shared by all ports
                         .secure = !options_.certificate.empty(),
                         .password = options_.password};
    std::vector<std::string> names = options_.names;
    names.push_back(options_.host);
    if (IsLoopback(options_.host)) names.insert(names.end(), {"localhost", "127.0.0.1", "::1"});
    for (const std::string& name : names) {
      access.hosts.push_back(absl::StrCat(InUrl(name), ":", port));
      access.hosts.push_back(InUrl(name));  // behind a proxy, or on the default port
    }
    access_ = std::make_unique<Access>(std::move(access));
    return absl::OkStatus();
  }

  std::string url() const {
    return absl::StrCat(options_.certificate.empty() ? "http://" : "https://", InUrl(options_.host),
                        ":", server_->port());
  }
  std::string NewLink(const std::string& job) {
    return absl::StrCat(url(), "/login?token=", access()->NewToken(),
                        job.empty() ? "" : absl::StrCat("&next=/jobs/", job));
  }
  void OnLinkUsed(std::function<void()> used) {
    const absl::MutexLock lock(&mutex_);
    link_used_ = std::move(used);
  }

 private:
  // Null until Start() has found the port.
  Access* access() {
    const absl::MutexLock lock(&mutex_);
    return access_.get();
  }

  bool IsStream(const Request& request) {
    Access* access = this->access();
    return access != nullptr && request.path == kStreamPath && request.method == "GET" &&
           access->CheckOrigin(request).ok() && access->Check(request).ok();
  }

  void Stream(const Request& request, StreamWriter& writer) {
    Feed::Viewer viewer(feed_, Text(request, "job"));
    if (!writer.Write("retry: 1000\n\n")) return;
    for (;;) {
      const FeedUpdate update = viewer.Next(kPing);
      if (update.ended || !writer.Write(MessagesOf(update))) return;
    }
  }

  Response Handle(const Request& request) {
    Access* access = this->access();
    if (access == nullptr) return ErrorResponse(503, "UNAVAILABLE", "starting");
    if (const absl::Status origin = access->CheckOrigin(request); !origin.ok()) {
      return ErrorResponse(origin);
    }
    if (request.path == "/login") return LogIn(*access, request);
    if (request.path == "/metrics" && options_.metrics) return Metrics(*access, request);
    if (absl::StartsWith(request.path, "/api/")) return HandleApi(*access, request);
    if (request.method != "GET" && request.method != "HEAD") {
      return ErrorResponse(405, "METHOD_NOT_ALLOWED", "pages can only be read");
    }
    const bool asset = absl::StartsWith(request.path, "/assets/");
    if (const auto session = access->SessionOf(request); !asset && !session.ok()) {
      return LoginPage(401, "This page needs a new link. Run `muster dashboard` to get one.",
                       access->has_password());
    }
    auto page = PageAt(request.path);
    return page ? *std::move(page) : ErrorResponse(404, "NOT_FOUND", "no such file");
  }

  Response LogIn(Access& access, const Request& request) {
    const bool by_password = request.method == "POST";
    const auto cookie = by_password ? access.LogIn(Text(request, "password"))
                                    : access.Redeem(Text(request, "token"));
    if (!cookie.ok()) {
      return LoginPage(401,
                       absl::StrCat(cookie.status().message(),
                                    by_password ? "" : "; `muster dashboard` prints a new one"),
                       access.has_password());
    }
    std::function<void()> used;
    {
      const absl::MutexLock lock(&mutex_);
      if (!by_password) used = link_used_;
    }
    if (used) used();
    return SessionStarted(*cookie, Text(request, "next"));
  }

  Response HandleApi(Access& access, const Request& request) {
    if (const absl::Status allowed = access.Check(request); !allowed.ok()) {
      return ErrorResponse(allowed);
    }
    if (request.path != "/api/session") return api_.Handle(request);
    nlohmann::json platforms = nlohmann::json::array();
    ServicePool::Lease service = services_.Take();
    for (const platform::Registration& one : (*service).platforms().registrations()) {
      platforms.push_back({{"name", one.traits.name}, {"title", one.traits.title}});
    }
    return JsonResponse({{"version", options_.version},
                         {"csrf", *access.SessionOf(request)},
                         {"platforms", std::move(platforms)}});
  }

  // Prometheus has no session. On loopback it needs none; elsewhere it sends the password.
  Response Metrics(Access& access, const Request& request) {
    if (access.has_password() && !access.SessionOf(request).ok()) {
      std::string header = request.Header("authorization"), given;
      absl::string_view basic = header;
      const bool sent =
          absl::ConsumePrefix(&basic, "Basic ") && absl::Base64Unescape(basic, &given);
      const size_t colon = given.find(':');
      const auto session = sent && colon != std::string::npos
                               ? access.LogIn(given.substr(colon + 1))
                               : absl::UnauthenticatedError("send the password (HTTP Basic)");
      if (!session.ok()) return ErrorResponse(session.status());
    }
    ServicePool::Lease service = services_.Take();
    const auto text = PrometheusText(*service);
    if (!text.ok()) return ErrorResponse(text.status());
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = *text};
  }

  const DashboardOptions options_;
  ServicePool services_;
  Feed feed_;
  Api api_{services_, feed_};
  absl::Mutex mutex_;
  std::unique_ptr<Access> access_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> link_used_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_;
};

absl::StatusOr<std::unique_ptr<Dashboard>> Dashboard::Start(const DashboardOptions& options,
                                                            ServiceFactory services) {
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  auto impl = std::make_unique<Impl>(options, std::move(services));
  MUSTER_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Dashboard>(new Dashboard(std::move(impl)));
}

Dashboard::Dashboard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dashboard::~Dashboard() = default;
std::string Dashboard::NewLink(const std::string& job) { return impl_->NewLink(job); }
void Dashboard::OnLinkUsed(std::function<void()> used) { impl_->OnLinkUsed(std::move(used)); }
std::string Dashboard::url() const { return impl_->url(); }

}  // namespace muster::dashboard
