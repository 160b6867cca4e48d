#include "jobs/notebook/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "jobs/notebook/folder.h"
#include "process/event_loop.h"
#include "process/exit_status.h"
#include "process/spawn.h"
#include "process/tree.h"
#include "supervise/control.h"
#include "supervise/guard.h"
#include "supervise/ports.h"

namespace muster::jobs {
namespace {

using nlohmann::json;

constexpr absl::Duration kReadyInterval = absl::Milliseconds(100);
constexpr absl::Duration kAnswerTimeout = absl::Seconds(2);
// Jupyter gives its kernels 5 s.
constexpr absl::Duration kStopGrace = absl::Seconds(10);
constexpr int kShownLines = 15;

// Returns whether a server on this machine answers an HTTP request.
bool AnswersHttp(int port) {
  const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout = absl::ToTimeval(kAnswerTimeout);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    return false;
  const std::string request =
      absl::StrCat("GET /api HTTP/1.0\r\nHost: 127.0.0.1:", port, "\r\n\r\n");
  if (!base::WriteAll(fd.get(), request).ok()) return false;
  std::array<char, 5> answer{};
  const ssize_t n = ::recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL);
  return absl::string_view(answer.data(), static_cast<size_t>(std::max<ssize_t>(n, 0))) == "HTTP/";
}

void SendLine(const base::UniqueFd& socket, const json& message) {
  if (!socket.valid()) return;
  const std::string line =
      absl::StrCat(message.dump(-1, ' ', false, json::error_handler_t::replace), "\n");
  // The process that waits for this may be gone.
  (void)::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL);
}

class NotebookServer {
 public:
  NotebookServer(NotebookFolder folder, base::UniqueFd report)
      : folder_(std::move(folder)), report_(std::move(report)) {}

  int Run();

 private:
  absl::Status Start();
  absl::Status Spawn();
  absl::StatusOr<int> ReservePort();
  void OnSignal(int signal);
  void OnReport();
  void CloseReport();
  json Answer(const json& request);
  void Stop(bool immediately);
  void Reap();
  void CheckReady();
  int Finish();
  void Report(const json& message);
  std::string WithLog(absl::string_view text) const;

  const NotebookFolder folder_;
  base::UniqueFd report_;
  NotebookLaunch launch_;
  std::unique_ptr<process::EventLoop> loop_;
  std::unique_ptr<supervise::ControlServer> control_;
  supervise::PortReservations ports_;
  std::string url_;
  int port_ = 0;
  pid_t pid_ = 0;
  std::optional<process::ExitStatus> exit_;
  bool ready_ = false;
  bool stopping_ = false;
  bool timed_out_ = false;
  absl::Time ready_by_ = absl::InfiniteFuture();
  absl::Time kill_at_ = absl::InfiniteFuture();
};

void NotebookServer::Report(const json& message) { SendLine(report_, message); }

absl::StatusOr<int> NotebookServer::ReservePort() {
  if (launch_.port == 0) return ports_.Reserve();
  MUSTER_RETURN_IF_ERROR(ports_.ReserveExactly(launch_.port));
  return launch_.port;
}

absl::Status NotebookServer::Start() {
  MUSTER_ASSIGN_OR_RETURN(launch_, NotebookLaunch::Load(folder_));
  MUSTER_ASSIGN_OR_RETURN(loop_, process::EventLoop::Create());
  MUSTER_RETURN_IF_ERROR(loop_->HandleSignals({SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGPIPE},
                                              [this](int signal) { OnSignal(signal); }));
  ::fcntl(report_.get(), F_SETFL, O_NONBLOCK);
  MUSTER_RETURN_IF_ERROR(loop_->AddFd(report_.get(), EPOLLIN, [this](uint32_t) { OnReport(); }));
  MUSTER_ASSIGN_OR_RETURN(port_, ReservePort());
  url_ = absl::StrCat("http://127.0.0.1:", port_, launch_.page);
  MUSTER_ASSIGN_OR_RETURN(control_, supervise::ControlServer::Listen(
                                        folder_.path(), *loop_,
                                        [this](const json& request) { return Answer(request); }));
  std::error_code ignored;
  std::filesystem::remove(folder_.ended(), ignored);
  return Spawn();
}

absl::Status NotebookServer::Spawn() {
  std::vector<std::string> argv = launch_.argv;
  argv.push_back(absl::StrCat("--port=", port_));
  MUSTER_ASSIGN_OR_RETURN(pid_, process::Spawn({.argv = std::move(argv),
                                                .env = process::CurrentEnvironment(),
                                                .working_dir = folder_.files(),
                                                .parent_death_signal = SIGKILL,
                                                .new_group = true}));
  ready_by_ = absl::Now() + absl::Seconds(launch_.timeout_seconds);
  return absl::OkStatus();
}

void NotebookServer::OnSignal(int signal) {
  if (signal == SIGCHLD) return Reap();
  if (signal != SIGPIPE) Stop(/*immediately=*/false);
}

void NotebookServer::OnReport() {
  std::array<char, 64> buffer;
  const ssize_t n = ::read(report_.get(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const absl::string_view words(buffer.data(), static_cast<size_t>(std::max<ssize_t>(n, 0)));
  if (n <= 0) CloseReport();
  Stop(/*immediately=*/absl::StrContains(words, "kill"));
}

void NotebookServer::CloseReport() {
  loop_->RemoveFd(report_.get());
  report_.Reset();
}

json NotebookServer::Answer(const json& request) {
  const std::string op = request["op"];
  if (op == "status") return {{"url", url_}, {"ready", ready_}, {"pid", pid_}};
  if (op != "stop") return {{"error", absl::StrCat("unknown op '", op, "'")}};
  Stop(/*immediately=*/false);
  return {{"ok", true}};
}

void NotebookServer::Stop(bool immediately) {
  if (!stopping_ && !exit_.has_value() && pid_ > 0) ::kill(-pid_, SIGTERM);
  const absl::Time limit = absl::Now() + (immediately ? absl::ZeroDuration() : kStopGrace);
  kill_at_ = std::min(kill_at_, limit);
  stopping_ = true;
}

// Also reaps orphans: this process is a subreaper.
void NotebookServer::Reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid == pid_) exit_ = process::ExitStatus::FromWait(status);
  }
}

void NotebookServer::CheckReady() {
  if (ready_ || stopping_ || exit_.has_value()) return;
  if (supervise::ListeningPorts().contains(port_) && AnswersHttp(port_)) {
    ready_ = true;
    Report({{"ready", url_}});
    if (!launch_.attached) CloseReport();
  } else if (absl::Now() >= ready_by_) {
    timed_out_ = true;
    Stop(/*immediately=*/false);
  }
}

std::string NotebookServer::WithLog(absl::string_view text) const {
  const std::vector<std::string> lines = folder_.LastLines(kShownLines);
  if (lines.empty()) return absl::StrCat(text, "; its log is empty: ", folder_.log());
  return absl::StrCat(text, "; the end of its log, ", folder_.log(), ":\n  ",
                      absl::StrJoin(lines, "\n  "));
}

int NotebookServer::Finish() {
  // Kernels and terminals, which have sessions of their own.
  process::KillAllDescendants();
  const std::string how = exit_.has_value() ? exit_->Describe() : "killed by SIGKILL";
  const bool ok = stopping_ || (exit_.has_value() && exit_->ok());
  if (timed_out_) {
    Report({{"error", WithLog(absl::StrCat("Jupyter did not answer within ",
                                           launch_.timeout_seconds, " s"))}});
  } else if (!ready_ && !stopping_) {
    Report({{"error", WithLog(absl::StrCat("Jupyter ended before it answered: ", how))}});
  } else {
    const std::string text = stopping_ ? "stopped" : absl::StrCat("Jupyter ended: ", how);
    if (!stopping_) base::ReplaceFile(folder_.ended(), text).IgnoreError();
    Report({{"ended", ok ? text : WithLog(text)}, {"ok", ok}});
  }
  control_.reset();  // a client that waits for the end gets end of file
  return ok ? 0 : 1;
}

int NotebookServer::Run() {
  if (const absl::Status started = Start(); !started.ok()) {
    Report({{"error", started.message()}});
    return 1;
  }
  while (!exit_.has_value()) {
    const absl::Time next = ready_ || stopping_ ? kill_at_ : absl::Now() + kReadyInterval;
    if (const absl::Status waited = loop_->Wait(next - absl::Now()); !waited.ok()) break;
    CheckReady();
    if (absl::Now() >= kill_at_) break;
  }
  return Finish();
}

}  // namespace

int ServeNotebook(const std::string& folder, int report_fd) {
  // No process below may read standard input or keep the socket open.
  base::UniqueFd report(::fcntl(report_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), report_fd);
  const NotebookFolder paths(folder);
  // The guard and the server share the lock, so it is free once both have exited.
  const auto lock = base::FileLock::Try(paths.server_lock());
  if (!lock.ok() || !lock->has_value()) {
    SendLine(report,
             {{"error", lock.ok() ? "the notebook is already running" : lock.status().message()}});
    return 1;
  }
  const int code = supervise::RunGuarded(
      [&] { return NotebookServer(paths, std::move(report)).Run(); }, [&] { report.Reset(); });
  return code < 0 ? 1 : code;
}

}  // namespace muster::jobs
