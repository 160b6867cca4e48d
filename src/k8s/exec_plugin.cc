#include "k8s/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "k8s/resource.h"
#include "net/http.h"
#include "process/exit_status.h"
#include "process/run.h"
#include "process/spawn.h"

namespace muster::k8s {
namespace {

constexpr size_t kMaxOutput = 1 << 20;
constexpr size_t kErrorTail = 4 << 10;
constexpr absl::Duration kInteractiveTimeout = absl::Minutes(5);

// Reads all available bytes without blocking. Returns false at the end of the stream.
bool Drain(int fd, std::string& into, bool tee) {
  std::array<char, 16384> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    const absl::string_view bytes(buffer.data(), static_cast<size_t>(n));
    if (tee) (void)base::WriteAll(STDERR_FILENO, bytes);
    absl::StrAppend(&into, bytes);
    if (into.size() > kMaxOutput) return false;
  }
}

// A running plugin, which is killed on destruction.
class Running {
 public:
  Running(pid_t pid, bool grouped) : pid_(pid), grouped_(grouped) {}
  ~Running() { Kill(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void Kill() {
    if (reaped_) return;
    ::kill(grouped_ ? -pid_ : pid_, SIGKILL);
    (void)Wait();
  }
  process::ExitStatus Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    reaped_ = true;
    return process::ExitStatus::FromWait(status);
  }

 private:
  const pid_t pid_;
  const bool grouped_;
  bool reaped_ = false;
};

struct Output {
  std::string out;
  std::string error;
};

// Reads the output until the process exits. It does not wait for the end of the pipes, which
// children of the plugin may keep open. Returns false on a timeout or too much output.
bool Collect(pid_t pid, const process::Pipe& out, const process::Pipe& error, absl::Time end,
             Output& output) {
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const bool tee = ::isatty(STDERR_FILENO) == 1;
  std::array<pollfd, 3> waits = {pollfd{process.get(), POLLIN, 0},
                                 pollfd{out.read.get(), POLLIN, 0},
                                 pollfd{error.read.get(), POLLIN, 0}};
  for (;;) {
    const int64_t left = absl::ToInt64Milliseconds(end - absl::Now());
    if (left <= 0) return false;
    ::poll(waits.data(), waits.size(), static_cast<int>(std::min<int64_t>(left, 1000)));
    const bool ended = (waits[0].revents & POLLIN) != 0;
    if (!Drain(out.read.get(), output.out, false)) waits[1].fd = -1;
    if (!Drain(error.read.get(), output.error, tee)) waits[2].fd = -1;
    if (ended) return true;
    if (output.out.size() > kMaxOutput || output.error.size() > kMaxOutput) return false;
  }
}

std::string ExecInfo(const ExecPlugin& plugin, const ClusterConfig& cluster, bool interactive) {
  Json spec = {{"interactive", interactive}};
  if (plugin.provide_cluster_info) {
    Json info = {{"server", cluster.server}, {"config", plugin.cluster_config}};
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) info[key] = value;
    };
    add("certificate-authority-data", absl::Base64Escape(cluster.authorities));
    add("tls-server-name", cluster.tls_server_name);
    add("proxy-url", cluster.proxy);
    spec["cluster"] = std::move(info);
  }
  const Json info = {
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}};
  return info.dump();
}

absl::StatusOr<Credential> Parse(const std::string& text, const std::string& api_version) {
  const Json json = base::ParseJson(text);
  if (TextAt(json, "/kind") != "ExecCredential") {
    return absl::UnauthenticatedError("printed no ExecCredential in JSON");
  }
  if (TextAt(json, "/apiVersion") != api_version) {
    return absl::UnauthenticatedError(absl::StrCat(
        "printed an ExecCredential of ", net::ServerMessage(TextAt(json, "/apiVersion")),
        " instead of ", api_version, "; change 'apiVersion' of the user's 'exec'"));
  }
  Credential credential{.certificate = TextAt(json, "/status/clientCertificateData"),
                        .key = TextAt(json, "/status/clientKeyData")};
  const std::string token = TextAt(json, "/status/token");
  if (!token.empty()) credential.authorization = absl::StrCat("Bearer ", token);
  if (credential.certificate.empty() != credential.key.empty() ||
      (token.empty() && credential.key.empty())) {
    return absl::UnauthenticatedError(
        "printed neither a token nor a client certificate with its key");
  }
  const std::string expires = TextAt(json, "/status/expirationTimestamp");
  std::string error;
  if (!expires.empty() &&
      !absl::ParseTime(absl::RFC3339_full, expires, &credential.expires, &error)) {
    return absl::UnauthenticatedError("printed an invalid expirationTimestamp");
  }
  return credential;
}

// Returns the last lines of the plugin's stderr, joined to one.
std::string StderrTail(const std::string& error) {
  absl::string_view tail = absl::StripAsciiWhitespace(error);
  if (tail.size() > kErrorTail) tail.remove_prefix(tail.size() - kErrorTail);
  std::string line(tail);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line.empty() ? "" : absl::StrCat(": ", net::ServerMessage(line));
}

absl::StatusOr<Credential> Run(const ExecPlugin& plugin, const ClusterConfig& cluster,
                               absl::Duration timeout) {
  const bool interactive = plugin.interactive_mode != "Never" && ::isatty(STDIN_FILENO) == 1;
  if (plugin.interactive_mode == "Always" && !interactive) {
    return absl::FailedPreconditionError("requires a terminal");
  }
  MUSTER_ASSIGN_OR_RETURN(process::Pipe out, process::MakePipe());
  MUSTER_ASSIGN_OR_RETURN(process::Pipe error, process::MakePipe());
  for (const process::Pipe* pipe : {&out, &error}) ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  process::SpawnOptions options{.argv = plugin.args, .env = process::CurrentEnvironment()};
  options.argv.insert(options.argv.begin(), plugin.command);
  for (const auto& [name, value] : plugin.env) options.env[name] = value;
  options.env["KUBERNETES_EXEC_INFO"] = ExecInfo(plugin, cluster, interactive);
  options.stdin_fd = interactive ? STDIN_FILENO : -1;
  options.output_fd = out.write.get();
  options.error_fd = error.write.get();
  options.new_group = !interactive;  // a background group must not read the terminal
  MUSTER_ASSIGN_OR_RETURN(const pid_t pid, process::Spawn(options));
  Running running(pid, options.new_group);
  out.write.Reset();
  error.write.Reset();
  const absl::Duration limit = interactive ? std::max(timeout, kInteractiveTimeout) : timeout;
  Output output;
  if (!Collect(pid, out, error, absl::Now() + limit, output)) {
    return absl::DeadlineExceededError(
        absl::StrCat("did not exit within ", absl::FormatDuration(limit), ", or printed too much",
                     StderrTail(output.error)));
  }
  if (const process::ExitStatus status = running.Wait(); !status.ok()) {
    return absl::UnauthenticatedError(
        absl::StrCat("failed (", status.Describe(), ")", StderrTail(output.error)));
  }
  return Parse(output.out, plugin.api_version);
}

}  // namespace

absl::StatusOr<Credential> RunExecPlugin(const ExecPlugin& plugin, const ClusterConfig& cluster,
                                         absl::Duration timeout) {
  auto credential = Run(plugin, cluster, timeout);
  if (credential.ok()) return credential;
  const std::string name = absl::StrCat("the plugin '", plugin.command, "'");
  if (!absl::IsNotFound(credential.status())) return base::Annotate(credential.status(), name);
  return absl::FailedPreconditionError(absl::StrCat(name, ": ", credential.status().message(),
                                                    plugin.install_hint.empty() ? "" : "\n",
                                                    plugin.install_hint));
}

}  // namespace muster::k8s
