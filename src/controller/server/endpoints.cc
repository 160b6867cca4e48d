#include "controller/server/endpoints.h"

#include <openssl/ssl.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "controller/server/admission.h"
#include "controller/server/certificate_files.h"
#include "controller/server/http_server.h"
#include "k8s/encoding.h"

namespace muster::controller {
namespace {

constexpr size_t kMaxReview = size_t{8} << 20;  // objects in the API server are smaller

HttpResponse NotFound() { return {.status = 404, .body = "not found\n"}; }

HttpResponse Answer(const EndpointOptions& options, const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return NotFound();
  if (request.path == "/healthz") return {.body = "ok\n"};
  if (request.path == "/readyz") {
    const bool ready = options.ready();
    return {.status = ready ? 200 : 503, .body = ready ? "ok\n" : "not ready\n"};
  }
  if (request.path == "/metrics") {
    return {.body = options.metrics(), .type = "text/plain; version=0.0.4"};
  }
  return NotFound();
}

HttpResponse Validate(const TfJobOptions& job, const HttpRequest& request) {
  if (request.method != "POST" || request.path != "/validate") return NotFound();
  const Json review = k8s::ParseObject(request.body);
  if (!review.is_object()) return {.status = 400, .body = "expected an AdmissionReview\n"};
  return {.body = Review(review, job).dump(-1, ' ', false, Json::error_handler_t::replace),
          .type = "application/json"};
}

}  // namespace

struct Endpoints::Servers {
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  std::unique_ptr<CertificateFiles> certificate;
  std::unique_ptr<SSL_CTX, Free> tls;
  // Separate servers, so that reviews do not delay probes.
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<HttpServer> webhook;
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
    for (const auto& [ns, own] : counts) {
      absl::StrAppend(&text, name, "{job_namespace=\"", ns, "\",framework=\"tensorflow\"} ",
                      own.*counter.value, "\n");
    }
  }
  absl::StrAppend(&text,
                  "# HELP training_operator_is_leader Whether this instance is the leader.\n",
                  "# TYPE training_operator_is_leader gauge\ntraining_operator_is_leader ",
                  leading ? 1 : 0, "\n");
  return text;
}

Endpoints::Endpoints(std::unique_ptr<Servers> servers) : servers_(std::move(servers)) {}

Endpoints::~Endpoints() = default;

absl::StatusOr<std::unique_ptr<Endpoints>> Endpoints::Start(const EndpointOptions& options) {
  auto servers = std::make_unique<Servers>();
  if (options.http_port != 0) {
    MUSTER_ASSIGN_OR_RETURN(servers->http,
                            HttpServer::Start({.port = options.http_port,
                                               .handle = [options](const HttpRequest& request) {
                                                 return Answer(options, request);
                                               }}));
  }
  if (!options.certificate_folder.empty()) {
    servers->certificate =
        std::make_unique<CertificateFiles>(options.certificate_folder, options.log);
    MUSTER_RETURN_IF_ERROR(servers->certificate->Read());
    servers->tls.reset(SSL_CTX_new(TLS_server_method()));
    if (servers->tls == nullptr) return absl::InternalError("cannot create a TLS context");
    servers->certificate->Attach(servers->tls.get());
    MUSTER_ASSIGN_OR_RETURN(
        servers->webhook,
        HttpServer::Start({.port = options.webhook_port,
                           .tls = servers->tls.get(),
                           .max_body = kMaxReview,
                           .handle = [job = options.job](const HttpRequest& request) {
                             return Validate(job, request);
                           }}));
  }
  return std::unique_ptr<Endpoints>(new Endpoints(std::move(servers)));
}

}  // namespace muster::controller
