#include "platform/ssh/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/files/regular_file.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "base/text/units.h"
#include "platform/ssh/protocol.h"

namespace muster::ssh {
namespace {

constexpr size_t kMaxUnsent = 1 << 20;
constexpr int64_t kMaxProgress = 64 << 10;
constexpr absl::Duration kProgressInterval = absl::Seconds(1);
constexpr size_t kMaxKeptSamples = 720;  // per task: an hour without a connection

absl::Time ModifiedAt(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? absl::TimeFromTimespec(info.st_mtim)
                                          : absl::InfinitePast();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(const std::string& dir,
                                                     const std::string& job_id) {
  std::unique_ptr<Agent> agent(new Agent(supervise::JobDir(dir), job_id));
  MUSTER_ASSIGN_OR_RETURN(agent->loop_, process::EventLoop::Create());
  MUSTER_RETURN_IF_ERROR(agent->loop_->HandleSignals(
      {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGPIPE}, [self = agent.get()](int signal) {
        if (signal == SIGCHLD) self->processes_->OnChildren();
        if (signal != SIGTERM) return;
        self->closing_ = true;
        self->why_closing_ = absl::CancelledError("SIGTERM");
      }));
  agent->processes_ =
      std::make_unique<supervise::Processes>(agent->dir_, job_id, *agent->loop_, *agent);
  MUSTER_ASSIGN_OR_RETURN(agent->listener_,
                          process::UnixListener::Serve(dir, kAgentSocket, *agent->loop_,
                                                       [self = agent.get()](base::UniqueFd in) {
                                                         self->Accept(std::move(in));
                                                       }));
  agent->last_received_ = agent->progress_at_ = base::Clock::Real().Now();
  agent->keys_.Advance(agent->last_received_);
  agent->id_ = absl::StrCat(::getpid(), "-", absl::ToUnixMicros(agent->last_received_));
  return agent;
}

// The listener closes first. A caller that sees its connection end and reconnects must not be
// queued by an agent that no longer accepts.
Agent::~Agent() {
  listener_.reset();
  channel_.reset();
  processes_.reset();
}

absl::Status Agent::Run() {
  while (!closing_) {
    MUSTER_RETURN_IF_ERROR(loop_->Wait(NextWakeUp() - base::Clock::Real().Now()));
    processes_->Advance();
    ForgetEnded();
    SendLogs();
    SendProgress();
    SendSamples();
    keys_.Advance(base::Clock::Real().Now());
    outbox_.Acknowledge();
    if (base::Clock::Real().Now() - last_received_ <= host_timeout_) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("no message from the supervisor for ", base::DurationToString(host_timeout_)));
  }
  return why_closing_;
}

absl::Time Agent::NextWakeUp() const {
  absl::Time next =
      std::min({processes_->next_timer(), last_received_ + host_timeout_, keys_.next_timer()});
  const bool at_work = std::any_of(copies_.begin(), copies_.end(),
                                   [](const auto& copy) { return copy.second.runs; });
  if (channel_ != nullptr && at_work) next = std::min(next, progress_at_);
  return next;
}

// The newest connection wins: the supervisor reconnects before this side notices that the old
// connection is cut.
void Agent::Accept(base::UniqueFd in) {
  base::UniqueFd out(::fcntl(in.get(), F_DUPFD_CLOEXEC, 0));
  auto channel = Channel::Open(*loop_, std::move(in), std::move(out),
                               {.received = [this](const Message& m) { Receive(m.head); },
                                .closed =
                                    [this] {
                                      outbox_.Detach();
                                      channel_.reset();
                                    }});
  if (!channel.ok()) return;
  outbox_.Detach();
  channel_ = *std::move(channel);
  hello_received_ = false;
}

void Agent::Receive(const Json& head) {
  const absl::Time now = base::Clock::Real().Now();
  const std::string op = base::TextMember(head, "op");
  // A hello does not restart the timeout: the supervisor, which may never receive the answer,
  // counts from its last write on a connection that was up. Its first ping follows the answer.
  if (op == "hello") return Hello(head, now);
  last_received_ = now;
  if (op == "ping") {
    SetHostTimeout(head);
    channel_->Send(
        {{"op", "pong"}, {"sent", base::IntMember(head, "sent")}, {"now", TimeToJson(now)}});
    return;
  }
  if (op == "give_up") {
    closing_ = true;
    why_closing_ = absl::AbortedError("replaced by another run");
    return;
  }
  if (outbox_.Take(head)) Act(op, head);
}

void Agent::SetHostTimeout(const Json& head) {
  host_timeout_ =
      absl::Milliseconds(std::max<int64_t>(1000, base::IntMember(head, "host_timeout_ms")));
}

void Agent::Hello(const Json& head, absl::Time now) {
  // The supervisor has given this agent up; its tasks may run elsewhere by now.
  if (epoch_.has_value() && *epoch_ != base::IntMember(head, "epoch")) {
    closing_ = true;
    why_closing_ = absl::AbortedError("the supervisor has given up on this agent");
    return;
  }
  epoch_ = base::IntMember(head, "epoch");
  SetHostTimeout(head);
  // Output is resent from where the supervisor's copy ends.
  if (head.contains("logs") && head["logs"].is_object()) {
    for (const auto& [name, position] : head["logs"].items()) {
      const auto task = cluster::TaskId::Parse(name);
      if (!task.ok()) continue;
      TaskCopy& copy = CopyOf(*task);
      copy.sent = PositionFromJson(position);
      copy.log->Seek(copy.sent);
    }
  }
  // So are samples: those that were sent over a connection that was cut are lost.
  for (auto& [task, copy] : copies_) {
    const auto received = base::OptionalIntMember(base::MemberOf(head, "samples"), task.ToString());
    copy.samples_sent =
        received.has_value() ? absl::FromUnixMicros(*received) : absl::InfinitePast();
  }
  channel_->Send({{"op", "hello"},
                  {"agent", id_},
                  {"seen", outbox_.seen()},
                  {"sent", base::IntMember(head, "sent")},
                  {"now", TimeToJson(now)}});
  outbox_.Attach(channel_.get(), base::IntMember(head, "seen"));
  hello_received_ = true;
}

void Agent::Act(const std::string& op, const Json& head) {
  if (op == "start") {
    if (const auto start = StartFromJson(head); start.ok()) Start(*start);
    return;
  }
  if (op == "policies") return processes_->SetPolicies(PoliciesFromJson(head));
  if (op == "ports") return ReservePorts(head);
  if (op == "close") {
    closing_ = true;
    return;
  }
  const auto task = cluster::TaskId::Parse(base::TextMember(head, "task"));
  if (!task.ok()) return;
  const auto copy = copies_.find(*task);
  if (copy == copies_.end()) return;
  if (op == "end" && copy->second.attempt == base::IntMember(head, "attempt")) {
    copy->second.end_requested = true;
    processes_->End(*task, base::BoolMember(head, "kill"));
  }
  if (op == "forget") {
    // The task runs if the supervisor gave it up before it received the report of its start.
    copy->second.forgotten = true;
    copy->second.next.reset();
    processes_->End(*task, /*kill=*/true);
  }
}

// The log position is kept, because the task may return.
void Agent::ForgetEnded() {
  for (auto& [task, copy] : copies_) {
    if (copy.runs || !std::exchange(copy.forgotten, false)) continue;
    processes_->Forget(task);
  }
}

Agent::TaskCopy& Agent::CopyOf(const cluster::TaskId& task) {
  TaskCopy& copy = copies_[task];
  if (copy.log == nullptr) copy.log = std::make_unique<supervise::LogReader>(dir_.logs(), task);
  return copy;
}

void Agent::Start(const supervise::TaskStart& start) {
  TaskCopy& copy = CopyOf(start.task);
  copy.forgotten = false;
  if (copy.runs) {  // given up by the supervisor before it received the report of its start
    copy.next = start;
    processes_->End(start.task, /*kill=*/true);
    return;
  }
  copy.attempt = start.attempt;
  copy.end_requested = false;
  copy.progress = absl::InfinitePast();
  processes_->Start(start);
}

void Agent::ReservePorts(const Json& head) {
  std::vector<int> reserved;
  std::string error;
  const int64_t exactly = base::IntMember(head, "exactly");
  if (exactly > 0) {
    const absl::Status status = ports_.ReserveExactly(static_cast<int>(exactly));
    if (status.ok()) reserved.push_back(static_cast<int>(exactly));
    error = std::string(status.message());
  }
  for (int64_t i = base::IntMember(head, "count"); i > 0; --i) {
    const auto port = ports_.Reserve();
    if (!port.ok()) {
      error = std::string(port.status().message());
      break;
    }
    reserved.push_back(*port);
  }
  outbox_.Send({{"op", "ports"}, {"ports", reserved}, {"error", error}});
}

void Agent::OnStarted(const cluster::TaskId& task, pid_t pid) {
  TaskCopy& copy = CopyOf(task);
  copy.runs = true;
  outbox_.Send(
      {{"op", "started"}, {"task", task.ToString()}, {"attempt", copy.attempt}, {"pid", pid}});
}

void Agent::OnReady(const cluster::TaskId& task) {
  outbox_.Send({{"op", "ready"}, {"task", task.ToString()}, {"attempt", CopyOf(task).attempt}});
}

void Agent::OnEnded(const cluster::TaskId& task, const supervise::AttemptEnd& end,
                    absl::Time when) {
  TaskCopy& copy = CopyOf(task);
  copy.runs = false;
  outbox_.Send({{"op", "ended"},
                {"task", task.ToString()},
                {"attempt", copy.attempt},
                {"end", EndToJson(end)},
                {"asked", copy.end_requested},
                {"time", TimeToJson(when)},
                {"log", PositionToJson(processes_->LogEnd(task))}});
  if (const auto next = std::exchange(copy.next, std::nullopt)) Start(*next);
}

void Agent::OnStalled(const cluster::TaskId& task, const std::string& why) {
  outbox_.Send({{"op", "stalled"}, {"task", task.ToString()}, {"why", why}});
}

void Agent::OnSample(const cluster::TaskId& task, const supervise::Sample& sample) {
  std::deque<supervise::Sample>& samples = CopyOf(task).samples;
  if (samples.size() == kMaxKeptSamples) samples.pop_front();
  samples.push_back(sample);
  // The supervisor returns this time in microseconds; see Hello().
  samples.back().time = absl::FromUnixMicros(absl::ToUnixMicros(sample.time));
  SendSamples();  // the last one before the end of the task, which the supervisor waits for
}

void Agent::OnNote(const std::string& kind, const std::string& subject,
                   const std::string& message) {
  outbox_.Send({{"op", "note"}, {"kind", kind}, {"subject", subject}, {"message", message}});
}

// Round robin, one piece per task: a task with much output does not delay the output, and thus the
// end, of the others.
void Agent::SendLogs() {
  if (!hello_received_) return;
  auto copy = copies_.upper_bound(last_sent_);
  for (size_t silent = 0; silent < copies_.size();) {
    if (channel_ == nullptr || channel_->unsent() >= kMaxUnsent) return;
    if (copy == copies_.end()) copy = copies_.begin();
    silent = SendPiece(copy->first, copy->second) ? 0 : silent + 1;
    last_sent_ = copy->first;
    ++copy;
  }
}

bool Agent::SendPiece(const cluster::TaskId& task, TaskCopy& copy) {
  auto piece = copy.log->NextPiece();
  if (!piece.has_value()) {
    // All is sent. The log may end at the start of an empty segment, which no piece announces; the
    // supervisor waits for this position before it reports the end of the task.
    const supervise::LogPosition end = processes_->LogEnd(task);
    if (end.offset != 0 || end <= copy.sent) return false;
    piece = supervise::LogPiece{
        .attempt = copy.attempt, .time = base::Clock::Real().Now(), .next = end};
  }
  copy.sent = piece->next;
  channel_->Send({{"op", "log"},
                  {"task", task.ToString()},
                  {"attempt", piece->attempt},
                  {"time", TimeToJson(piece->time)},
                  {"next", PositionToJson(piece->next)}},
                 piece->bytes);
  return true;
}

void Agent::SendSamples() {
  if (channel_ == nullptr || !hello_received_) return;
  for (auto& [task, copy] : copies_) {
    auto next = std::upper_bound(
        copy.samples.begin(), copy.samples.end(), copy.samples_sent,
        [](absl::Time sent, const supervise::Sample& sample) { return sent < sample.time; });
    for (; next != copy.samples.end(); ++next) {
      if (channel_->unsent() >= kMaxUnsent) return;
      Json head = SampleToJson(*next);
      head["op"] = "sample";
      head["task"] = task.ToString();
      channel_->Send(head);
      copy.samples_sent = next->time;
    }
  }
}

void Agent::SendProgress() {
  const absl::Time now = base::Clock::Real().Now();
  if (channel_ == nullptr || !hello_received_ || now < progress_at_) return;
  progress_at_ = now + kProgressInterval;
  for (auto& [task, copy] : copies_) {
    const std::string path = dir_.progress(task);
    const absl::Time modified = ModifiedAt(path);
    if (modified == copy.progress) continue;
    copy.progress = modified;
    const auto content = base::ReadRegularFile(path, kMaxProgress);
    if (content.ok()) channel_->Send({{"op", "progress"}, {"task", task.ToString()}}, *content);
  }
}

}  // namespace muster::ssh
