// The control socket of a supervisor: a Unix stream socket in the job's private folder that carries
// one JSON document per line. docs/formats/control.md specifies the requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "nlohmann/json.hpp"
#include "process/event_loop.h"
#include "process/unix_socket.h"

namespace muster::supervise {

// Serves the control socket on the supervisor's event loop. Accepts connections of the same user
// and of root only. Drops a client that sends an invalid or too long line, or that does not read
// its responses. Drops an idle client when the limit of clients is reached. Not thread-safe.
class ControlServer {
 public:
  // Returns the response to `request`, which has a string member "op". The response {"error": "…"}
  // refuses it. The server handles "watch" itself.
  using Handler = std::function<nlohmann::json(const nlohmann::json& request)>;

  // Creates the socket in `job_dir`. `loop` must outlive the server.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Listen(const std::string& job_dir,
                                                               process::EventLoop& loop,
                                                               Handler handler);
  ~ControlServer();

  // Sends an empty line to every client that has sent {"op": "watch"}. Never blocks.
  void NotifyWatchers();

 private:
  struct Client {
    base::UniqueFd fd;
    std::string input;
    bool watching = false;
  };

  ControlServer(process::EventLoop& loop, Handler handler)
      : loop_(loop), handler_(std::move(handler)) {}
  void Add(base::UniqueFd fd);
  void Read(int fd);
  bool Answer(Client& client, const std::string& line);
  void Drop(int fd);

  process::EventLoop& loop_;
  Handler handler_;
  std::unique_ptr<process::UnixListener> listener_;
  std::map<int, Client> clients_;
};

// A blocking connection to a supervisor. Not thread-safe.
class ControlClient {
 public:
  // Returns Unavailable if no supervisor listens in `job_dir`.
  static absl::StatusOr<ControlClient> Connect(const std::string& job_dir);

  // Sends `request` and waits for the response. Returns FailedPrecondition with the supervisor's
  // message if it refuses the request, Unavailable if the connection is closed, or DeadlineExceeded
  // after `timeout`.
  absl::StatusOr<nlohmann::json> Call(const nlohmann::json& request, absl::Duration timeout);

  // After {"op": "watch"}, becomes readable on every notification, and at end of file once the
  // supervisor has exited.
  int fd() const { return fd_.get(); }
  // Discards the pending notifications. Returns false at end of file.
  bool DrainNotifications();

 private:
  explicit ControlClient(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

}  // namespace muster::supervise
