#include "supervise/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace muster::supervise {
namespace {

constexpr char kSocketName[] = "control.sock";
constexpr size_t kMaxRequestBytes = 32 << 20;  // an update carries a job file
constexpr size_t kMaxClients = 256;

std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Never blocks. Returns false if the client's buffer does not take the whole text.
bool Send(int fd, absl::string_view text) {
  return ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Listen(const std::string& job_dir,
                                                                     process::EventLoop& loop,
                                                                     Handler handler) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, std::move(handler)));
  MUSTER_ASSIGN_OR_RETURN(server->listener_,
                          process::UnixListener::Serve(job_dir, kSocketName, loop,
                                                       [self = server.get()](base::UniqueFd fd) {
                                                         self->Add(std::move(fd));
                                                       }));
  return server;
}

ControlServer::~ControlServer() {
  for (const auto& [fd, client] : clients_) loop_.RemoveFd(fd);
}

void ControlServer::Add(base::UniqueFd fd) {
  if (clients_.size() >= kMaxClients) {
    // Drops an idle connection, so that a full server still accepts a request to stop the job.
    const auto idle = std::find_if(clients_.begin(), clients_.end(), [](const auto& entry) {
      return !entry.second.watching && entry.second.input.empty();
    });
    if (idle == clients_.end()) return;
    Drop(idle->first);
  }
  const int number = fd.get();
  if (!loop_.AddFd(number, EPOLLIN, [this, number](uint32_t) { Read(number); }).ok()) return;
  clients_[number].fd = std::move(fd);
}

void ControlServer::Drop(int fd) {
  loop_.RemoveFd(fd);
  clients_.erase(fd);
}

void ControlServer::Read(int fd) {
  Client& client = clients_.at(fd);
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof(buffer));
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0 || client.input.size() > kMaxRequestBytes) {
    Drop(fd);
    return;
  }
  client.input.append(buffer, static_cast<size_t>(n));
  for (size_t end = 0; (end = client.input.find('\n')) != std::string::npos;) {
    const std::string line = client.input.substr(0, end);
    client.input.erase(0, end + 1);
    if (!Answer(client, line)) {
      Drop(fd);
      return;
    }
  }
}

bool ControlServer::Answer(Client& client, const std::string& line) {
  const auto request = base::ParseJson(line);
  if (!request.is_object() || !request.contains("op") || !request["op"].is_string()) return false;
  if (request["op"] == "watch") {
    client.watching = true;
    return Send(client.fd.get(), "{}\n");
  }
  // The handler must not call NotifyWatchers(), which may erase `client`.
  return Send(client.fd.get(), Dump(handler_(request)));
}

void ControlServer::NotifyWatchers() {
  std::vector<int> gone;
  for (const auto& [fd, client] : clients_) {
    // EAGAIN: the full buffer already contains an unread notification.
    if (client.watching && !Send(fd, "\n") && errno != EAGAIN) gone.push_back(fd);
  }
  for (const int fd : gone) Drop(fd);
}

absl::StatusOr<ControlClient> ControlClient::Connect(const std::string& job_dir) {
  auto fd = process::ConnectTo(job_dir, kSocketName);
  if (absl::IsUnavailable(fd.status())) {
    return absl::UnavailableError("the job's supervisor does not respond");
  }
  if (!fd.ok()) return fd.status();
  return ControlClient(*std::move(fd));
}

absl::StatusOr<nlohmann::json> ControlClient::Call(const nlohmann::json& request,
                                                   absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  const auto late = [] {
    return absl::DeadlineExceededError("the job's supervisor did not respond in time");
  };
  // Makes send() fail with EAGAIN after the timeout.
  const timeval send_timeout = absl::ToTimeval(timeout);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof(send_timeout));
  const std::string text = Dump(request);
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return late();
    if (n < 0) return absl::UnavailableError("the job's supervisor closed the connection");
    sent += static_cast<size_t>(n);
  }
  std::string answer;
  while (answer.find('\n') == std::string::npos) {
    pollfd waiting{.fd = fd_.get(), .events = POLLIN};
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) return late();
    if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[65536];
    const ssize_t n = ::read(fd_.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("the job's supervisor closed the connection");
    answer.append(buffer, static_cast<size_t>(n));
  }
  auto json = base::ParseJson(answer);
  if (json.is_discarded())
    return absl::InternalError("the job's supervisor sent an invalid response");
  if (json.contains("error"))
    return absl::FailedPreconditionError(json["error"].get<std::string>());
  return json;
}

bool ControlClient::DrainNotifications() {
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) continue;
    if (n < 0 && errno == EINTR) continue;
    return n < 0 && errno == EAGAIN;
  }
}

}  // namespace muster::supervise
