// The dashboard: a page in the browser that shows jobs live and acts on them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dashboard/services.h"

namespace muster::dashboard {

struct DashboardOptions {
  std::string host = "127.0.0.1";  // the address to listen on
  int port = 0;                    // 0 = any free one
  std::vector<std::string> names;  // further names under which browsers reach it
  std::string certificate, key;    // PEM files; "" = without TLS
  std::string password;            // "" = links only
  bool metrics = false;            // serves /metrics for Prometheus
  std::string version;             // of Muster
};

// Serves until it is destroyed. Thread-safe.
class Dashboard {
 public:
  // Returns InvalidArgument if `host` is not a loopback address and TLS or the password is missing,
  // or Unavailable if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(const DashboardOptions& options,
                                                          ServiceFactory services);
  ~Dashboard();

  // Returns a link that works once and opens the job's page; "" = the list of jobs. It replaces
  // earlier links that have not been used.
  std::string NewLink(const std::string& job = "");
  // Calls `used` after each use of a link, on a thread of the server.
  void OnLinkUsed(std::function<void()> used);
  std::string url() const;

 private:
  class Impl;
  explicit Dashboard(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::dashboard
