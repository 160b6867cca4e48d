// Test servers that run on node.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "storage/testing/environment.h"
#include "storage/testing/program.h"

namespace muster::storage {

class NodeServer {
 public:
  // Runs `node arguments…`, which prints its port when it listens on loopback. Returns null if it
  // does not, or if node is not installed.
  static std::unique_ptr<NodeServer> Start(std::vector<std::string> arguments) {
    ForgetProxies();
    arguments.insert(arguments.begin(), "node");
    auto program = TestProgram::Start(std::move(arguments));
    int port = 0;
    if (program == nullptr || !absl::SimpleAtoi(program->line(), &port)) return nullptr;
    return std::unique_ptr<NodeServer>(new NodeServer(std::move(program)));
  }

  std::string address() const { return absl::StrCat("http://127.0.0.1:", program_->line()); }

 private:
  explicit NodeServer(std::unique_ptr<TestProgram> program) : program_(std::move(program)) {}

  const std::unique_ptr<TestProgram> program_;
};

}  // namespace muster::storage
