// Test support for this module: a temporary home, records, child processes.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"
#include "history/history.h"
#include "history/job_folder.h"

namespace muster::history {

// A fixture with a temporary home.
class HistoryTest : public testing::Test {
 protected:
  std::string DatabasePath() const { return base::JoinPath(home_, "history.db"); }

  std::unique_ptr<History> OpenHistory() {
    HistoryOptions options;
    options.notice = [this](absl::string_view text) { notices_.emplace_back(text); };
    absl::StatusOr<std::unique_ptr<History>> history = History::Open(home_, options);
    EXPECT_TRUE(history.ok()) << history.status();
    return history.ok() ? *std::move(history) : nullptr;
  }

  // Returns the damaged files that were moved aside, without their -wal and -shm.
  std::vector<std::string> MovedAside() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(home_)) {
      std::string name = entry.path().filename().string();
      if (!absl::StartsWith(name, "history.db.damaged-")) continue;
      if (absl::EndsWith(name, "-wal") || absl::EndsWith(name, "-shm")) continue;
      names.push_back(std::move(name));
    }
    return names;
  }

  void WriteJobFolder(const job::JobRecord& job) const {
    const std::string folder = base::JoinPath(base::JoinPath(home_, "jobs"), job.id);
    ASSERT_TRUE(base::MakeDirectories(folder).ok());
    ASSERT_TRUE(
        base::WriteFileAtomically(base::JoinPath(folder, kJobFolderFile), JobFolderToJson(job, {}))
            .ok());
  }

  const base::TempDir temp_;
  std::string home_ = temp_.path();
  std::vector<std::string> notices_;
};

// Returns a job; a higher `i` makes it newer.
inline job::JobRecord MakeJob(const std::string& id, int i = 0,
                              job::JobState state = job::JobState::kRunning) {
  job::JobRecord job;
  job.id = id;
  job.name = id.substr(0, id.find('-'));
  job.platform = "local";
  job.state = state;
  job.created = absl::FromUnixSeconds(1'700'000'000 + i);
  return job;
}

inline job::TaskRecord MakeTask(const cluster::TaskId& id, int restarts = 0) {
  job::TaskRecord task;
  task.id = id;
  task.restarts = restarts;
  return task;
}

inline job::Event MakeEvent(std::string message) {
  return {0, absl::FromUnixSeconds(1'700'000'000), "task", "worker:0", std::move(message)};
}

// Runs `body` in a child process that exits with its result. gtest expectations have no effect
// there.
inline pid_t Fork(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  return pid;
}

inline bool Succeeded(pid_t pid) {
  int status = 0;
  return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace muster::history
