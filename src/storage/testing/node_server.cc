#include "storage/testing/node_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "storage/testing/environment.h"

namespace muster::storage {

std::unique_ptr<NodeServer> NodeServer::Start(const std::vector<std::string>& arguments) {
  ForgetProxies();
  auto server = std::unique_ptr<NodeServer>(new NodeServer);
  return server->Run(arguments) ? std::move(server) : nullptr;
}

NodeServer::~NodeServer() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string NodeServer::address() const { return absl::StrCat("http://127.0.0.1:", port_); }

bool NodeServer::Run(const std::vector<std::string>& arguments) {
  std::vector<const char*> words = {"node"};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  words.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(input.get(), 1);
    ::execvp("node", const_cast<char* const*>(words.data()));
    ::_exit(127);
  }
  input.Reset();
  std::string line;
  char byte = 0;
  while (::read(output.get(), &byte, 1) == 1 && byte != '\n') line.push_back(byte);
  return absl::SimpleAtoi(line, &port_);
}

}  // namespace muster::storage
