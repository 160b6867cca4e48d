// The HTTP endpoints of the operator: health, readiness, metrics and the validating webhook.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/job_counter.h"
#include "controller/rules/tfjob.h"

namespace muster::controller {

// Returns the job counters in the Prometheus text format, with the names of Kubeflow's operator.
std::string Metrics(const std::map<std::string, JobCounts>& counts, bool leading);

struct EndpointOptions {
  int http_port = 0;  // /healthz, /readyz, /metrics; 0: disabled
  int webhook_port = 0;
  std::string certificate_folder;  // tls.crt and tls.key of the webhook; "": disabled
  std::function<void(const std::string&)> log;
  std::function<bool()> ready;
  std::function<std::string()> metrics;
  TfJobOptions job;  // for the pods that the webhook builds as a trial
};

// Serves on its own threads until it is destroyed. The functions in the options are called on those
// threads.
class Endpoints {
 public:
  static absl::StatusOr<std::unique_ptr<Endpoints>> Start(const EndpointOptions& options);
  ~Endpoints();

 private:
  struct Servers;
  explicit Endpoints(std::unique_ptr<Servers> servers);
  std::unique_ptr<Servers> servers_;
};

}  // namespace muster::controller
