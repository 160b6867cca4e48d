// A supervisor's connection to the agent on one host.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "job/host_spec.h"
#include "platform/ssh/wire.h"
#include "process/event_loop.h"

namespace muster::ssh {

struct AgentConnectionOptions {
  job::HostSpec host;
  std::string agent;   // shell expression for the program, from RemotePath()
  std::string folder;  // the job's folder on the host
  std::string job;
  absl::Duration host_timeout;
};

// Connects to the agent, starting it if necessary, and reconnects after a failure for as long as
// this object lives. Messages are queued meanwhile. Not thread-safe.
//
//   Connecting ──hello──> Up ──cut, timeout──> Down ──backoff──> Connecting
//
// An agent that receives no message except `hello` for `host_timeout` ends all its tasks, and a new
// agent is started when the host is reachable again. `lost` is called `host_timeout` and some
// seconds after the last write to the agent, so its tasks have ended by then, or earlier if a new
// agent answers. It is called again after each further `host_timeout` while the host stays
// unreachable.
class AgentConnection {
 public:
  struct Handler {
    std::function<void(const Message& message)> received;
    std::function<Json()> logs;     // from task to the log position received
    std::function<Json()> samples;  // from task to the time of the last sample received
    std::function<void()> up;       // an agent answers: the first, or the same as before
    std::function<void(const std::string& why)> lost;  // is_up(): a new agent answers already
  };
  // `loop` must outlive this.
  AgentConnection(process::EventLoop& loop, AgentConnectionOptions options, Handler handler);
  ~AgentConnection();

  void Connect();
  void Send(Json head) { outbox_.Send(std::move(head)); }
  void SetHostTimeout(absl::Duration timeout) { options_.host_timeout = timeout; }
  // Ends the agent and everything that it runs. Does not reconnect afterwards.
  void Close();

  bool is_up() const { return up_; }
  // Returns true if the agent has acknowledged all messages.
  bool all_acknowledged() const { return outbox_.all_acknowledged(); }
  // Returns the reason why the connection is not up.
  const absl::Status& status() const { return status_; }
  // Returns by how much the host's clock is ahead of the local clock.
  absl::Duration skew() const { return skew_; }
  // Returns the time of the last message received or of the last attempt to connect.
  absl::Time last_received() const { return last_received_; }
  const job::HostSpec& host() const { return options_.host; }

  // Handles the exit of a child process. Returns false if it was not the ssh of this connection.
  bool OnChild(pid_t pid, int wait_status);
  absl::Time next_timer() const;
  void Advance();

 private:
  absl::Status Start();
  void EndSsh();
  void Receive(const Message& message);
  void Hello(const Json& head);
  void UpdateSkew(const Json& head);
  void Down(const absl::Status& why);
  void GiveUp(const std::string& why);
  // Returns how long the connection may be silent before it counts as cut.
  absl::Duration Timeout() const;

  process::EventLoop& loop_;
  AgentConnectionOptions options_;
  const Handler handler_;
  ReliableOutbox outbox_;
  std::unique_ptr<Channel> channel_;
  base::UniqueFd stderr_;  // standard error of ssh
  pid_t pid_ = 0;
  bool up_ = false;
  bool closing_ = false;
  bool was_up_ = false;  // at any time in the past
  std::string agent_;    // id of the current agent
  int64_t epoch_ = 0;    // number of agents given up
  int failures_ = 0;     // consecutive
  absl::Status status_;
  absl::Duration skew_;
  absl::Duration best_trip_ = absl::InfiniteDuration();
  absl::Time best_trip_at_;
  absl::Time last_received_;
  absl::Time ping_at_ = absl::InfiniteFuture();  // InfiniteFuture: after the next message received
  absl::Time pinged_;                            // time of the last ping
  absl::Time connect_at_ = absl::InfiniteFuture();
  absl::Time give_up_at_ = absl::InfiniteFuture();
};

}  // namespace muster::ssh
