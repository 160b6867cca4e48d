// A supervisor's connection to the agent on one host.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "job/host_spec.h"
#include "launch/ssh/wire.h"
#include "process/event_loop.h"

namespace muster::ssh {

struct LinkOptions {
  HostSpec host;
  std::string agent;   // the program there, for a shell: AgentProgram::RemotePath
  std::string folder;  // of the job there
  std::string job;
  absl::Duration host_timeout;
};

// Connects, and connects again when it is cut, for as long as it lives. Messages wait for the
// connection meanwhile. Not thread-safe.
//
//   Connecting ──hello──> Up ──cut, silent──> Down ──in a moment──> Connecting
//
// When the host was not heard of for `host_timeout` its agent has ended all it ran, and a new one
// is started when the host is back: `lost` is called, then or when a new agent answers, and again
// after each further `host_timeout` for as long as the host stays away.
class Link {
 public:
  struct Handler {
    std::function<void(const Message& message)> received;
    std::function<Json()> logs;  // task to how far its log was taken
    std::function<void()> up;    // an agent answers, the same as before or the first
    std::function<void(const std::string& why)> lost;  // is_up(): another agent is there by now
  };
  // `loop` must outlive it.
  Link(EventLoop& loop, LinkOptions options, Handler handler);
  ~Link();

  void Connect();
  void Send(Json head) { ledger_.Send(std::move(head)); }
  void SetHostTimeout(absl::Duration timeout) { options_.host_timeout = timeout; }
  // Has the agent end, with all that it runs, and does not connect again.
  void Close();

  bool is_up() const { return up_; }
  bool all_taken() const { return ledger_.all_taken(); }
  // Why it is not up.
  const absl::Status& status() const { return status_; }
  // By how much the host's clock is ahead of ours.
  absl::Duration skew() const { return skew_; }
  absl::Time heard() const { return heard_; }
  const HostSpec& host() const { return options_.host; }

  // Whether the process was its ssh.
  bool OnChild(pid_t pid, int wait_status);
  absl::Time next_timer() const;
  void Advance();

 private:
  absl::Status Start();
  void EndSsh();
  void Receive(const Message& message);
  void Hello(const Json& head);
  void NoteClock(const Json& head);
  void Down(const absl::Status& why);
  void GiveUp(const std::string& why);
  absl::Duration Patience() const;  // with a connection that brings nothing

  EventLoop& loop_;
  LinkOptions options_;
  const Handler handler_;
  Ledger ledger_;
  std::unique_ptr<Channel> channel_;
  UniqueFd said_;  // by ssh
  pid_t pid_ = 0;
  bool up_ = false;
  bool closing_ = false;
  bool was_up_ = false;  // at any time
  std::string agent_;    // the id of the one that we know
  int64_t epoch_ = 0;
  int failures_ = 0;  // in a row
  absl::Status status_;
  absl::Duration skew_;
  absl::Duration best_trip_ = absl::InfiniteDuration();
  absl::Time best_trip_at_;
  absl::Time heard_;
  absl::Time ping_at_ = absl::InfiniteFuture();
  absl::Time connect_at_ = absl::InfiniteFuture();
  absl::Time give_up_at_ = absl::InfiniteFuture();
};

}  // namespace muster::ssh
