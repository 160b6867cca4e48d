// Test support: temporary folders, fault injection, child processes, waiting.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster::base {

// A private folder, removed with its content at the end of the test.
class TempDir {
 public:
  TempDir() : path_(testing::TempDir() + "muster-XXXXXX") { ::mkdtemp(path_.data()); }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// While alive, this process can open no more descriptors; open ones stay usable.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &limit_);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &limit_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit limit_{};
};

// Runs `body` in a child process. Returns its exit code, or -1 if a signal ended it.
inline int InChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Waits until `happened` returns true, or returns false after `limit`. The default limit is
// generous for machines under load.
inline bool Eventually(const std::function<bool()>& happened,
                       absl::Duration limit = absl::Seconds(30)) {
  const absl::Time give_up = absl::Now() + limit;
  while (!happened()) {
    if (absl::Now() > give_up) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace muster::base
