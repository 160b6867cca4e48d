#include "jobs/notebook/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "process/run.h"
#include "process/spawn.h"
#include "supervise/control.h"

namespace muster::jobs {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr absl::Duration kStopTimeout = absl::Seconds(30);
constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

NotebookSession::Message MessageOf(const std::string& line) {
  using Kind = NotebookSession::Message::Kind;
  const nlohmann::json json = base::ParseJson(line);
  if (json.contains("ready")) return {Kind::kReady, base::TextMember(json, "ready")};
  if (json.contains("ended")) {
    return {Kind::kEnded, base::TextMember(json, "ended"), base::BoolMember(json, "ok")};
  }
  return {Kind::kFailed, base::TextMember(json, "error")};
}

// Waits for end of file. Returns false after the deadline.
bool AwaitEnd(supervise::ControlClient& client, absl::Time deadline) {
  while (absl::Now() < deadline) {
    pollfd readable{client.fd(), POLLIN, 0};
    const auto left = static_cast<int>(absl::ToInt64Milliseconds(deadline - absl::Now()));
    if (::poll(&readable, 1, left) > 0 && !client.DrainNotifications()) return true;
  }
  return false;
}

}  // namespace

std::optional<RunningNotebook> FindRunningNotebook(const NotebookFolder& folder) {
  auto client = supervise::ControlClient::Connect(folder.path());
  if (!client.ok()) return std::nullopt;
  const auto status = client->Call({{"op", "status"}}, kCallTimeout);
  if (!status.ok()) return std::nullopt;
  return RunningNotebook{.url = base::TextMember(*status, "url"),
                         .ready = base::BoolMember(*status, "ready"),
                         .pid = static_cast<int>(base::IntMember(*status, "pid"))};
}

std::optional<RunningNotebook> AwaitRunningNotebook(const NotebookFolder& folder,
                                                    absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::optional<RunningNotebook> running = FindRunningNotebook(folder);
  while (running.has_value() && !running->ready && absl::Now() < deadline) {
    absl::SleepFor(kPollInterval);
    running = FindRunningNotebook(folder);
  }
  return running;
}

absl::Status StopNotebook(const NotebookFolder& folder) {
  auto client = supervise::ControlClient::Connect(folder.path());
  if (!client.ok()) {
    const std::string ended = HowNotebookEnded(folder);
    return absl::NotFoundError(
        absl::StrCat("no notebook is running", ended.empty() ? "" : "; ", ended));
  }
  const absl::Time deadline = absl::Now() + kStopTimeout;
  MUSTER_RETURN_IF_ERROR(client->Call({{"op", "watch"}}, kCallTimeout).status());
  const absl::Status asked = client->Call({{"op", "stop"}}, kCallTimeout).status();
  // Unavailable: it ended meanwhile.
  if (!asked.ok() && !absl::IsUnavailable(asked)) return asked;
  if (!asked.ok() || AwaitEnd(*client, deadline)) {
    return base::FileLock::Acquire(folder.server_lock(), deadline - absl::Now()).status();
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the notebook did not end within ", absl::FormatDuration(kStopTimeout)));
}

std::string HowNotebookEnded(const NotebookFolder& folder) {
  return base::ReadFile(folder.ended(), 4096).value_or("");
}

absl::StatusOr<NotebookSession> NotebookSession::Start(
    const std::string& program, const NotebookFolder& folder, const NotebookLaunch& launch,
    const std::map<std::string, std::string>& env) {
  MUSTER_RETURN_IF_ERROR(launch.Save(folder));
  const base::UniqueFd log(
      ::open(folder.log().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return base::DiskError(errno, folder.log());
  std::array<int, 2> fds;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  base::UniqueFd report(fds[0]);
  const base::UniqueFd theirs(fds[1]);
  ::fcntl(report.get(), F_SETFL, O_NONBLOCK);
  MUSTER_ASSIGN_OR_RETURN(const pid_t server,
                          process::Spawn({.argv = {program, "serve-notebook", folder.path()},
                                          .env = env,
                                          .working_dir = "/",
                                          .stdin_fd = theirs.get(),
                                          .output_fd = log.get(),
                                          .new_session = true}));
  return NotebookSession(folder, server, std::move(report));
}

std::optional<NotebookSession::Message> NotebookSession::Read() {
  std::array<char, 4096> buffer;
  for (;;) {
    if (const size_t end = input_.find('\n'); end != std::string::npos) {
      const std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return MessageOf(line);
    }
    const ssize_t n = ::read(report_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return std::nullopt;
    if (n > 0) {
      input_.append(buffer.data(), static_cast<size_t>(n));
      continue;
    }
    return Message{
        Message::Kind::kFailed,
        absl::StrCat("the process that supervises Jupyter was killed; the log is ", folder_.log())};
  }
}

void NotebookSession::Stop(bool immediately) {
  const absl::string_view word = immediately ? "kill\n" : "stop\n";
  (void)::send(report_.get(), word.data(), word.size(), MSG_NOSIGNAL);
}

void NotebookSession::Join() { process::WaitOrKill(server_, kStopTimeout); }

}  // namespace muster::jobs
