// Servers for tests that node runs.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace muster::storage {

// Ends with this process.
class NodeServer {
 public:
  // `node arguments…` prints a line with its port once it listens on loopback. Null when it does
  // not, or there is no node.
  static std::unique_ptr<NodeServer> Start(const std::vector<std::string>& arguments);
  ~NodeServer();
  NodeServer(const NodeServer&) = delete;
  NodeServer& operator=(const NodeServer&) = delete;

  std::string address() const;  // "http://127.0.0.1:PORT"

 private:
  NodeServer() = default;
  bool Run(const std::vector<std::string>& arguments);

  pid_t pid_ = 0;
  int port_ = 0;
};

}  // namespace muster::storage
