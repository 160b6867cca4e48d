// How other muster processes talk to a supervisor: a Unix socket in the job's private folder, one
// JSON document a line. docs/formats/control.md lists the requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "launch/unix_socket.h"
#include "nlohmann/json.hpp"
#include "process/event_loop.h"

namespace muster {

// Serves on the supervisor's loop. Only the same user is answered. A client that sends garbage, too
// much or nothing, or does not read, is dropped. Not thread-safe; `loop` must outlive it.
class ControlServer {
 public:
  // Answers one request, which has a string "op"; {"error": "…"} refuses it.
  using Handler = std::function<nlohmann::json(const nlohmann::json& request)>;

  static absl::StatusOr<std::unique_ptr<ControlServer>> Listen(const std::string& job_dir,
                                                               EventLoop& loop, Handler handler);
  ~ControlServer();

  // Tells those who asked with {"op": "watch"} that there is something new to read.
  void NotifyWatchers();

 private:
  struct Client {
    UniqueFd fd;
    std::string input;
    bool watching = false;
  };

  ControlServer(EventLoop& loop, Handler handler) : loop_(loop), handler_(std::move(handler)) {}
  void Add(UniqueFd fd);
  void Read(int fd);
  bool Answer(Client& client, const std::string& line);
  void Drop(int fd);

  EventLoop& loop_;
  Handler handler_;
  std::unique_ptr<UnixListener> listener_;
  std::map<int, Client> clients_;
};

// One connection to a supervisor.
class ControlClient {
 public:
  // Unavailable when nobody serves there.
  static absl::StatusOr<ControlClient> Connect(const std::string& job_dir);

  // Sends a request and waits for its answer. FailedPrecondition with the supervisor's words when
  // it refuses; Unavailable when it is gone; DeadlineExceeded.
  absl::StatusOr<nlohmann::json> Call(const nlohmann::json& request, absl::Duration timeout);

  // After {"op": "watch"}: readable when something is new, and at end of file when the supervisor
  // is gone.
  int fd() const { return fd_.get(); }
  // Takes what was signalled. False at end of file.
  bool DrainNotifications();

 private:
  explicit ControlClient(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster
