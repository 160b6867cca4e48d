#include "controller/endpoints.h"

#include <httplib.h>

#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "controller/admission.h"
#include "controller/certificate_files.h"

namespace muster::controller {
namespace {

constexpr size_t kMaxReview = size_t{8} << 20;  // the API server's objects are smaller
constexpr int kSeconds = 10;

void SetLimits(httplib::Server& server) {
  server.set_payload_max_length(kMaxReview);
  server.set_read_timeout(kSeconds);
  server.set_write_timeout(kSeconds);
}

absl::Status Taken(int port) {
  return absl::UnavailableError(
      absl::StrCat("port ", port, " cannot be listened on; is it in use?"));
}

}  // namespace

struct Endpoints::Servers {
  std::unique_ptr<CertificateFiles> certificate;
  httplib::Server http;
  std::unique_ptr<httplib::SSLServer> webhook;
  std::jthread http_thread;
  std::jthread webhook_thread;
};

std::string Metrics(const std::map<std::string, JobCounts>& counts, bool leading) {
  struct Counter {
    const char* name;
    const char* help;
    int64_t JobCounts::*value;
  };
  constexpr Counter kCounters[] = {{"created", "Jobs that were created", &JobCounts::created},
                                   {"deleted", "Jobs that were deleted", &JobCounts::deleted},
                                   {"successful", "Jobs that succeeded", &JobCounts::succeeded},
                                   {"failed", "Jobs that failed", &JobCounts::failed},
                                   {"restarted", "Jobs that restarted", &JobCounts::restarted}};
  std::string text;
  for (const Counter& counter : kCounters) {
    const std::string name = absl::StrCat("training_operator_jobs_", counter.name, "_total");
    absl::StrAppend(&text, "# HELP ", name, " ", counter.help, ".\n# TYPE ", name, " counter\n");
    for (const auto& [name_space, own] : counts) {
      absl::StrAppend(&text, name, "{job_namespace=\"", name_space, "\",framework=\"tensorflow\"} ",
                      own.*counter.value, "\n");
    }
  }
  absl::StrAppend(&text, "# HELP training_operator_is_leader Whether this one works.\n",
                  "# TYPE training_operator_is_leader gauge\ntraining_operator_is_leader ",
                  leading ? 1 : 0, "\n");
  return text;
}

Endpoints::Endpoints(std::unique_ptr<Servers> servers) : servers_(std::move(servers)) {}

Endpoints::~Endpoints() {
  servers_->http.stop();
  if (servers_->webhook != nullptr) servers_->webhook->stop();
}

absl::StatusOr<std::unique_ptr<Endpoints>> Endpoints::Start(const EndpointOptions& options) {
  auto servers = std::make_unique<Servers>();
  Servers& own = *servers;
  std::unique_ptr<Endpoints> endpoints(new Endpoints(std::move(servers)));
  if (options.http_port != 0) {
    SetLimits(own.http);
    own.http.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    own.http.Get("/readyz",
                 [ready = options.ready](const httplib::Request&, httplib::Response& response) {
                   response.status = ready() ? 200 : 503;
                   response.set_content(ready() ? "ok\n" : "not yet\n", "text/plain");
                 });
    own.http.Get("/metrics",
                 [metrics = options.metrics](const httplib::Request&, httplib::Response& response) {
                   response.set_content(metrics(), "text/plain; version=0.0.4");
                 });
    if (!own.http.bind_to_port("0.0.0.0", options.http_port)) return Taken(options.http_port);
    own.http_thread = std::jthread([&own] { own.http.listen_after_bind(); });
  }
  if (!options.certificate_folder.empty()) {
    own.certificate = std::make_unique<CertificateFiles>(options.certificate_folder, options.log);
    MUSTER_RETURN_IF_ERROR(own.certificate->Read());
    own.webhook = std::make_unique<httplib::SSLServer>([&own](SSL_CTX& context) {
      own.certificate->Serve(&context);
      return true;
    });
    SetLimits(*own.webhook);
    own.webhook->Post(
        "/validate", [](const httplib::Request& request, httplib::Response& response) {
          const Json review = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
          if (!review.is_object()) {
            response.status = 400;
            return;
          }
          response.set_content(Review(review).dump(-1, ' ', false, Json::error_handler_t::replace),
                               "application/json");
        });
    if (!own.webhook->bind_to_port("0.0.0.0", options.webhook_port)) {
      return Taken(options.webhook_port);
    }
    own.webhook_thread = std::jthread([&own] { own.webhook->listen_after_bind(); });
  }
  return endpoints;
}

}  // namespace muster::controller
