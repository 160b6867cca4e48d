// Google Cloud Storage as tests/gs_server.mjs plays it.
#pragma once

#include <memory>
#include <string>

#include "net/http_client.h"
#include "nlohmann/json.hpp"
#include "storage/testing/node_server.h"

namespace muster::storage {

class GsServer {
 public:
  // With the options that gs_server.mjs knows, as JSON. Null when there is no node.
  static std::unique_ptr<GsServer> Start(const nlohmann::json& options);

  std::string address() const { return node_->address(); }
  // What /test/`path` answers, sent a `body` or nothing.
  nlohmann::json Test(const std::string& path, const nlohmann::json& body = nullptr);
  // What goes wrong from now on: a fault, or a list of them (gs_faults.mjs).
  void Fail(const nlohmann::json& faults) {
    (void)Test("faults", faults.is_array() ? faults : nlohmann::json::array({faults}));
  }
  // How many requests, each "METHOD path content-range", held `text`.
  int CountOf(const std::string& text);

 private:
  GsServer(std::unique_ptr<NodeServer> node, std::unique_ptr<net::HttpClient> http)
      : node_(std::move(node)), http_(std::move(http)) {}

  const std::unique_ptr<NodeServer> node_;
  const std::unique_ptr<net::HttpClient> http_;
};

}  // namespace muster::storage
