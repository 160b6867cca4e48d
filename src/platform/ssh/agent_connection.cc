#include "platform/ssh/agent_connection.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "platform/ssh/command.h"
#include "platform/ssh/protocol.h"
#include "process/exit_status.h"
#include "process/run.h"
#include "process/spawn.h"

namespace muster::ssh {
namespace {

constexpr absl::Duration kPingInterval = absl::Seconds(3);
constexpr absl::Duration kConnectTimeout = absl::Seconds(20);
constexpr absl::Duration kFirstDelay = absl::Milliseconds(500);
constexpr absl::Duration kMaxDelay = absl::Seconds(10);
constexpr absl::Duration kClockTimeout = absl::Minutes(1);
// Time for the agent to end its tasks after it has given up the supervisor.
constexpr absl::Duration kEndTimeout = absl::Seconds(3);

}  // namespace

AgentConnection::AgentConnection(process::EventLoop& loop, AgentConnectionOptions options,
                                 Handler handler)
    : loop_(loop), options_(std::move(options)), handler_(std::move(handler)) {}

AgentConnection::~AgentConnection() {
  channel_.reset();
  EndSsh();
}

void AgentConnection::EndSsh() {
  if (pid_ != 0) process::WaitOrKill(std::exchange(pid_, 0), absl::ZeroDuration());
}

void AgentConnection::Connect() {
  connect_at_ = absl::InfiniteFuture();
  last_received_ = base::Clock::Real().Now();
  if (const absl::Status started = Start(); !started.ok()) return Down(started);
  Json hello = {{"op", "hello"},
                {"seen", outbox_.seen()},
                {"epoch", epoch_},
                {"sent", TimeToJson(base::Clock::Real().Now())},
                {"host_timeout_ms", absl::ToInt64Milliseconds(options_.host_timeout)},
                {"logs", handler_.logs()},
                {"samples", handler_.samples()}};
  channel_->Send(hello);
}

void AgentConnection::Close() {
  Send({{"op", "close"}});
  closing_ = true;
}

absl::Duration AgentConnection::Timeout() const {
  return up_ ? std::min(kConnectTimeout, options_.host_timeout / 2) : kConnectTimeout;
}

absl::Status AgentConnection::Start() {
  MUSTER_ASSIGN_OR_RETURN(process::Pipe in, process::MakePipe());
  MUSTER_ASSIGN_OR_RETURN(process::Pipe out, process::MakePipe());
  stderr_ = base::UniqueFd(::memfd_create("ssh", MFD_CLOEXEC));
  const std::string command =
      ForAnyShell(absl::StrCat("exec ", options_.agent, " attach \"$0\" \"$1\""));
  MUSTER_ASSIGN_OR_RETURN(
      pid_,
      process::Spawn({.argv = SshArgv(options_.host,
                                      absl::StrCat(command, " ", base::ShellQuote(options_.folder),
                                                   " ", base::ShellQuote(options_.job)),
                                      was_up_ || failures_ > 0 ? Sharing::kOwn : Sharing::kShared),
                      .env = SshEnvironment(),
                      .working_dir = "/",
                      .stdin_fd = in.read.get(),
                      .output_fd = out.write.get(),
                      .error_fd = stderr_.get(),
                      .parent_death_signal = SIGKILL,
                      .new_group = true}));
  MUSTER_ASSIGN_OR_RETURN(
      channel_, Channel::Open(loop_, std::move(out.read), std::move(in.write),
                              {.received = [this](const Message& message) { Receive(message); },
                               .closed = [] {}},  // ssh exits too, and OnChild() reports the reason
                              kPreface));
  return absl::OkStatus();
}

void AgentConnection::Receive(const Message& message) {
  last_received_ = base::Clock::Real().Now();
  const std::string op = base::TextMember(message.head, "op");
  if (op == "hello") return Hello(message.head);
  // Any message permits the next ping: a pong may be queued behind much output.
  if (up_ && ping_at_ == absl::InfiniteFuture()) {
    ping_at_ =
        std::max(last_received_, pinged_ + std::min(kPingInterval, options_.host_timeout / 6));
  }
  if (op == "pong") return UpdateSkew(message.head);
  if (outbox_.Take(message.head) && op != "taken") handler_.received(message);
}

// Uses the round trip that took least time, which bounds the skew best. It expires because clocks
// drift.
void AgentConnection::UpdateSkew(const Json& head) {
  const absl::Time sent = TimeMember(head, "sent");
  const absl::Duration trip = last_received_ - sent;
  if (trip > best_trip_ && last_received_ - best_trip_at_ < kClockTimeout) return;
  best_trip_ = trip;
  best_trip_at_ = last_received_;
  skew_ = TimeMember(head, "now") - (sent + trip / 2);
}

void AgentConnection::Hello(const Json& head) {
  const std::string agent = base::TextMember(head, "agent");
  up_ = was_up_ = true;
  // GiveUp() resets the outbox, so it must run before Attach().
  if (!agent_.empty() && agent != agent_) {
    GiveUp("its agent was killed, or the host was restarted");
  }
  agent_ = agent;
  failures_ = 0;
  status_ = absl::OkStatus();
  give_up_at_ = absl::InfiniteFuture();
  ping_at_ = last_received_;
  UpdateSkew(head);
  outbox_.Attach(channel_.get(), base::IntMember(head, "seen"));
  handler_.up();
}

// Messages to the old agent are of no use to a new one.
void AgentConnection::GiveUp(const std::string& why) {
  outbox_ = ReliableOutbox();
  agent_.clear();
  give_up_at_ = absl::InfiniteFuture();
  handler_.lost(why);
}

void AgentConnection::Down(const absl::Status& why) {
  outbox_.Detach();
  // Counts from the last write, not from the last message received: if only the direction from the
  // host is cut, the agent still receives messages and restarts its own timeout.
  if (up_) give_up_at_ = channel_->last_write() + options_.host_timeout + kEndTimeout;
  channel_.reset();
  EndSsh();
  up_ = false;
  status_ = why;
  ping_at_ = absl::InfiniteFuture();
  best_trip_ = absl::InfiniteDuration();
  connect_at_ =
      base::Clock::Real().Now() + std::min(kMaxDelay, kFirstDelay * (1 << std::min(failures_, 10)));
  ++failures_;
  if (closing_) connect_at_ = give_up_at_ = absl::InfiniteFuture();
}

bool AgentConnection::OnChild(pid_t pid, int wait_status) {
  if (pid != pid_) return false;
  pid_ = 0;
  ::lseek(stderr_.get(), 0, SEEK_SET);
  const std::string error_output = base::ReadAll(stderr_.get(), 1 << 20).value_or("");
  const int code = process::ExitStatus::FromWait(wait_status).code();
  Down(ExplainSsh(options_.host, code == 0 ? 255 : code, error_output));
  return true;
}

absl::Time AgentConnection::next_timer() const {
  absl::Time next = std::min({ping_at_, connect_at_, give_up_at_});
  if (channel_ != nullptr) next = std::min(next, last_received_ + Timeout());
  return next;
}

void AgentConnection::Advance() {
  const absl::Time now = base::Clock::Real().Now();
  outbox_.Acknowledge();
  if (now >= give_up_at_) {
    const bool knew_agent = !agent_.empty();
    GiveUp(absl::StrCat("the host was unreachable for ",
                        base::DurationToString(options_.host_timeout)));
    give_up_at_ = now + options_.host_timeout + kEndTimeout;
    if (knew_agent) {
      ++epoch_;  // an old agent that still runs sees the change and ends
      // A connection in progress has sent the old epoch.
      if (channel_ != nullptr) return Down(status_);
    }
  }
  if (channel_ != nullptr && now - last_received_ > Timeout()) {
    return Down(absl::UnavailableError(absl::StrCat(options_.host.name, ": it does not respond")));
  }
  if (channel_ != nullptr && now >= ping_at_) {
    // The next ping is sent only after a message of the agent. Further ones would extend the life
    // of an agent whose messages do not arrive, and with it the wait of the supervisor.
    ping_at_ = absl::InfiniteFuture();
    pinged_ = now;
    channel_->Send({{"op", "ping"},
                    {"sent", TimeToJson(now)},
                    {"host_timeout_ms", absl::ToInt64Milliseconds(options_.host_timeout)}});
  }
  if (now >= connect_at_) Connect();
}

}  // namespace muster::ssh
