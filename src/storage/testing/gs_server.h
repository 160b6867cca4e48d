// The Google Cloud Storage emulator tests/gs_server.mjs.
#pragma once

#include <memory>
#include <string>

#include "net/http_client.h"
#include "nlohmann/json.hpp"
#include "storage/testing/node_server.h"

namespace muster::storage {

class GsServer {
 public:
  // Starts the server with options of gs_server.mjs. Returns null if node is not installed.
  static std::unique_ptr<GsServer> Start(const nlohmann::json& options);

  std::string address() const { return node_->address(); }
  // Returns the response of /test/`path` to a GET, or to a POST of `body`.
  nlohmann::json Test(const std::string& path, const nlohmann::json& body = nullptr);
  // Injects a fault or a list of faults (gs_faults.mjs) from now on.
  void Fail(const nlohmann::json& faults) {
    (void)Test("faults", faults.is_array() ? faults : nlohmann::json::array({faults}));
  }
  // Returns how many requests ("METHOD path content-range") contained `text`.
  int CountOf(const std::string& text);

 private:
  GsServer(std::unique_ptr<NodeServer> node, std::unique_ptr<net::HttpClient> http)
      : node_(std::move(node)), http_(std::move(http)) {}

  const std::unique_ptr<NodeServer> node_;
  const std::unique_ptr<net::HttpClient> http_;
};

}  // namespace muster::storage
