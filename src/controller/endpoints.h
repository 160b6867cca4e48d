// What the operator answers: is it alive, is it ready, what has it done, may this job be.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/job_counter.h"
#include "controller/tfjob.h"

namespace muster::controller {

// The counters of TFJobs as Kubeflow's operator calls them, in Prometheus' text format.
std::string Metrics(const std::map<std::string, JobCounts>& counts, bool leading);

struct EndpointOptions {
  int http_port = 0;  // /healthz, /readyz, /metrics; 0: none
  int webhook_port = 0;
  std::string certificate_folder;  // tls.crt and tls.key of the webhook; "": none
  std::function<void(const std::string&)> log;
  std::function<bool()> ready;
  std::function<std::string()> metrics;
  TfJobOptions job;  // by which pods of jobs are tried
};

// Answers in threads of its own while it lives.
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
