// A program that a test starts. It is killed with the test's process at the latest.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"

namespace muster::storage {

class TestProgram {
 public:
  // Starts the program and waits for its first line of output. Returns null if there is none.
  static std::unique_ptr<TestProgram> Start(std::vector<std::string> command) {
    auto program = std::unique_ptr<TestProgram>(new TestProgram);
    return program->Run(command) ? std::move(program) : nullptr;
  }
  ~TestProgram() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  TestProgram(const TestProgram&) = delete;
  TestProgram& operator=(const TestProgram&) = delete;

  const std::string& line() const { return line_; }

 private:
  TestProgram() = default;

  bool Run(std::vector<std::string>& command) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    const base::UniqueFd output(ends[0]);
    base::UniqueFd input(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(input.get(), 1);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    input.Reset();
    char byte = 0;
    while (::read(output.get(), &byte, 1) == 1 && byte != '\n') line_.push_back(byte);
    return byte == '\n';
  }

  pid_t pid_ = 0;
  std::string line_;
};

}  // namespace muster::storage
