// Fixture of the supervisor tests: real jobs, and an event sink that is a file.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "nlohmann/json.hpp"
#include "platform/local/platform.h"
#include "platform/local/runner.h"
#include "process/tree.h"
#include "supervise/control.h"
#include "supervise/leftovers.h"
#include "supervise/main.h"
#include "supervise/testing.h"

namespace muster::local {

// Appends every change to a file, one JSON document per line. Fails while `<path>.broken` exists.
class FileSink final : public job::EventSink {
 public:
  explicit FileSink(std::string path) : path_(std::move(path)) {}

  absl::Status Apply(const job::StateChange& change) override {
    if (::access((path_ + ".broken").c_str(), F_OK) == 0) {
      return absl::UnavailableError("broken on purpose");
    }
    nlohmann::json json = {{"state", std::string(job::ToString(change.job.state))},
                           {"reason", change.job.reason},
                           {"failure", change.job.failure},
                           {"supervisor", change.job.supervisor->pid},
                           {"tasks", nlohmann::json::object()},
                           {"removed", nlohmann::json::array()},
                           {"events", nlohmann::json::array()}};
    for (const job::TaskRecord& task : change.tasks) {
      json["tasks"][task.id.ToString()] = {{"state", std::string(job::ToString(task.state))},
                                           {"attempt", task.attempt},
                                           {"restarts", task.restarts},
                                           {"address", task.address},
                                           {"pid", task.pid},
                                           {"exit_code", task.exit_code.value_or(-1)},
                                           {"reason", task.reason}};
    }
    for (const cluster::TaskId& task : change.removed) json["removed"].push_back(task.ToString());
    for (const job::Event& event : change.events) {
      json["events"].push_back(absl::StrCat(event.subject, "|", event.message));
    }
    const base::UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    return base::WriteAll(fd.get(), json.dump() + "\n");
  }

 private:
  const std::string path_;
};

class SupervisorTest : public supervise::LaunchTest {
 protected:
  ~SupervisorTest() override {
    EXPECT_EQ(Processes(), 0u) << "left running";
    supervise::KillLeftovers(submission_.id);
    if (guard_ > 0) {
      ::kill(guard_, SIGKILL);
      ::waitpid(guard_, nullptr, 0);
    }
  }

  // Starts the job as `muster run` does. Returns the supervisor's report: "ok\n" or an error.
  std::string Start(absl::string_view job_file) {
    submission_ = Submit(job_file);
    EXPECT_TRUE(dir().Create().ok());
    EXPECT_TRUE(dir().SaveSubmission(submission_).ok());
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    base::UniqueFd report(fds[0]), child_end(fds[1]);
    guard_ = ::fork();
    if (guard_ == 0) {
      ::setsid();
      const int log = ::open(dir().supervisor_log().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(log, STDOUT_FILENO);
      ::dup2(log, STDERR_FILENO);
      report.Reset();
      ::_exit(supervise::Supervise(
          dir().path(), child_end.get(), [this] { return OpenSink(); },
          [](const supervise::JobDir& job, const job::Submission& submission,
             process::EventLoop& loop, supervise::RunnerEvents& events) {
            return std::make_unique<LocalRunner>(job, submission.id, loop, events);
          }));
    }
    child_end.Reset();
    return base::ReadAll(report.get()).value_or("");
  }
  void MustStart(absl::string_view job_file) { ASSERT_EQ(Start(job_file), "ok\n"); }

  absl::StatusOr<std::unique_ptr<job::EventSink>> OpenSink() const {
    return std::make_unique<FileSink>(SinkPath());
  }
  std::string SinkPath() const { return home_ + "/sink"; }

  // Waits until the guard, and with it the whole job, has ended. Returns its exit code, or -1 if a
  // signal ended it.
  int WaitForEnd() {
    int status = 0;
    EXPECT_TRUE(base::Eventually([&] { return ::waitpid(guard_, &status, WNOHANG) == guard_; }))
        << "the job does not end";
    guard_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Returns the merged content of the sink: the newest row of each task and all events.
  nlohmann::json Record() const {
    nlohmann::json record = {{"tasks", nlohmann::json::object()},
                             {"events", nlohmann::json::array()},
                             {"removed", nlohmann::json::array()}};
    const std::string text = base::ReadFile(SinkPath()).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const auto change = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (change.is_discarded()) break;  // a write is in progress
      for (const char* key : {"state", "reason", "failure", "supervisor"})
        record[key] = change[key];
      for (const auto& [task, row] : change["tasks"].items()) record["tasks"][task] = row;
      for (const char* list : {"events", "removed"}) {
        for (const auto& entry : change[list]) record[list].push_back(entry);
      }
      for (const auto& task : change["removed"]) record["tasks"].erase(task.get<std::string>());
    }
    return record;
  }
  std::string State() const { return Record().value("state", ""); }
  std::string StateOf(const std::string& task) const {
    const nlohmann::json tasks = Record()["tasks"];
    return tasks.contains(task) ? tasks[task]["state"].get<std::string>() : "";
  }
  bool WaitForTask(const std::string& task, const std::string& state) const {
    return base::Eventually([&] { return StateOf(task) == state; });
  }

  std::string LogOf(const std::string& stem) const {
    return base::ReadFile(dir().logs() + "/" + stem + ".log").value_or("");
  }
  bool WaitForOutput(const std::string& stem, const std::string& text) const {
    return base::Eventually([&] { return LogOf(stem).find(text) != std::string::npos; });
  }

  absl::StatusOr<nlohmann::json> Call(const nlohmann::json& request) const {
    auto client = supervise::ControlClient::Connect(dir().path());
    if (!client.ok()) return client.status();
    return client->Call(request, absl::Seconds(30));
  }
  absl::Status Change(absl::string_view job_file) {
    return Call({{"op", "update"}, {"submission", job::SubmissionToJson(Submit(job_file))}})
        .status();
  }

  // Returns the number of processes of the job or of one of its tasks, without supervisor and
  // guard.
  size_t Processes(const std::string& task = "") const {
    size_t count = 0;
    for (const process::ProcessInfo& process :
         process::ProcessesWithEnvironment(absl::StrCat("MUSTER_JOB_ID=", submission_.id))) {
      if (task.empty() || process::HasEnvironment(process.pid, absl::StrCat("MUSTER_TASK=", task)))
        ++count;
    }
    return count;
  }

  void Touch(const std::string& name) const {
    ASSERT_TRUE(base::WriteFileAtomically(home_ + "/" + name, "").ok());
  }

  job::Submission submission_;
  pid_t guard_ = 0;
};

// Returns a shell command that waits for a file in the job's working directory.
inline std::string Await(const std::string& file) {
  return absl::StrCat("while [ ! -e ", file, " ]; do sleep 0.02; done");
}

}  // namespace muster::local
