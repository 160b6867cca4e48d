#include "platform/ssh/runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "cluster/address.h"
#include "platform/platform.h"
#include "platform/ssh/protocol.h"

namespace muster::ssh {
namespace {

constexpr int kSparePorts = 64;  // for later tasks, and to replace ports taken by others
constexpr absl::Duration kAllConnectedTimeout = absl::Seconds(60);
constexpr absl::Duration kCloseTimeout = absl::Seconds(10);
constexpr int kKilled = 137;  // 128 + SIGKILL, by which an agent ends tasks after host_timeout

}  // namespace

absl::StatusOr<std::unique_ptr<SshRunner>> SshRunner::Create(supervise::JobDir dir,
                                                             const job::Submission& submission,
                                                             process::EventLoop& loop,
                                                             supervise::RunnerEvents& events) {
  std::unique_ptr<SshRunner> runner(new SshRunner(std::move(dir), loop, events));
  runner->policies_ = submission.spec.policies;
  runner->job_id_ = submission.id;
  if (absl::Status connected = runner->Connect(submission); !connected.ok()) {
    // Ends the agents that did answer, rather than leave them waiting for a supervisor.
    while (!runner->Finish()) {
      MUSTER_RETURN_IF_ERROR(loop.Wait(runner->next_timer() - base::Clock::Real().Now()));
      runner->OnChildren();
      runner->Advance();
    }
    return connected;
  }
  return runner;
}

absl::Status SshRunner::Connect(const job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment assignment, AssignmentOf(submission));
  for (const job::AssignedHost& placed : assignment.hosts) {
    Host& host = hosts_[placed.spec.name];
    host.placed = placed;
    host.tasks = static_cast<int>(
        std::count_if(assignment.holder.begin(), assignment.holder.end(),
                      [&](const auto& held) { return held.second == placed.spec.name; }));
    host.connection = std::make_unique<AgentConnection>(
        loop_,
        AgentConnectionOptions{.host = placed.spec,
                               .agent = assignment.agent,
                               .folder = placed.folder,
                               .job = submission.id,
                               .host_timeout = policies_.host_timeout},
        AgentConnection::Handler{
            .received = [this, &host](const Message& m) { Receive(host, m); },
            .logs = [&host] { return LogsOf(host); },
            .samples = [&host] { return SamplesOf(host); },
            .up =
                [this, &host] {
                  ConfigureAgent(host);
                  SendQueued(host);
                },
            .lost = [this, &host](const std::string& why) { OnHostLost(host, why); }});
    host.connection->Connect();
  }
  return WaitForPorts();
}

absl::Status SshRunner::WaitForPorts() {
  const absl::Time give_up = base::Clock::Real().Now() + kAllConnectedTimeout;
  for (;;) {
    const Host* waits = nullptr;
    for (const auto& [name, host] : hosts_) {
      if (!host.port_error.empty()) {
        return absl::ResourceExhaustedError(absl::StrCat(name, ": ", host.port_error));
      }
      if (host.free_ports.empty()) waits = &host;
    }
    if (waits == nullptr) return absl::OkStatus();
    if (base::Clock::Real().Now() > give_up) {
      const absl::Status& why = waits->connection->status();
      return why.ok() ? absl::UnavailableError(
                            absl::StrCat(waits->placed.spec.name, ": its agent does not respond"))
                      : why;
    }
    MUSTER_RETURN_IF_ERROR(loop_.Wait(std::min(next_timer(), give_up) - base::Clock::Real().Now()));
    OnChildren();
    Advance();
  }
}

// A new agent has no state: it receives the policies and reserves the ports in use again.
void SshRunner::ConfigureAgent(Host& host) {
  if (host.configured) return;
  host.configured = true;
  Json policies = PoliciesToJson(policies_);
  policies["op"] = "policies";
  host.connection->Send(std::move(policies));
  for (const int port : host.used_ports)
    host.connection->Send({{"op", "ports"}, {"exactly", port}});
  host.free_ports.clear();
  host.connection->Send({{"op", "ports"}, {"count", host.tasks + kSparePorts}});
}

absl::StatusOr<cluster::ClusterSpec> SshRunner::Assign(const job::Submission& next,
                                                       const cluster::ClusterSpec& current) {
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment assignment, AssignmentOf(next));
  cluster::ClusterSpec cluster = PlanAddresses(next.spec, assignment, current);
  for (const cluster::TaskId& id : next.spec.Tasks()) {
    const job::AssignedHost& placed = assignment.HostOf(id);
    const auto found = hosts_.find(placed.spec.name);
    if (found == hosts_.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          placed.spec.name, " is not a host of the running job; stop the job to change its hosts"));
    }
    Host& host = found->second;
    if (cluster.AddressOf(id) == platform::kUnassigned) {
      if (host.free_ports.empty()) {
        return absl::ResourceExhaustedError(
            absl::StrCat(placed.spec.name, ": no free port is left"));
      }
      cluster.Set(id, cluster::MakeAddress(placed.address, host.free_ports.front()));
      host.used_ports.insert(host.free_ports.front());
      host.free_ports.pop_front();
    }
    Task& task = tasks_[id];
    task.next_host = placed.spec.name;
    // A running or queued attempt stays with its host; the next one uses next_host.
    if (!task.alive && !task.queued.has_value()) task.host = task.next_host;
  }
  return cluster;
}

void SshRunner::Release(const cluster::ClusterSpec& left, const cluster::ClusterSpec& kept) {
  std::set<std::string> needed;
  for (const auto& [role, addresses] : kept.roles()) {
    for (const auto& [index, address] : addresses) needed.insert(address);
  }
  for (const auto& [role, addresses] : left.roles()) {
    for (const auto& [index, address] : addresses) {
      const auto parsed = cluster::ParseAddress(address);
      if (!parsed.has_value() || needed.contains(address)) continue;
      for (auto& [name, host] : hosts_) {
        if (host.placed.address != parsed->host || host.used_ports.erase(parsed->port) == 0)
          continue;
        host.free_ports.push_back(parsed->port);
      }
    }
  }
}

std::optional<std::string> SshRunner::AnotherAddress(const cluster::TaskId& task,
                                                     absl::string_view address) {
  Host& host = hosts_.at(tasks_.at(task).next_host);
  if (host.free_ports.empty()) return std::nullopt;
  const int port = host.free_ports.front();
  host.free_ports.pop_front();
  host.used_ports.erase(cluster::PortOf(address));
  host.used_ports.insert(port);
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

bool SshRunner::IsPicked(const job::JobSpec& spec, const cluster::TaskId& task) const {
  return ssh::IsPicked(spec, task);
}

absl::StatusOr<job::TaskLaunch> SshRunner::LaunchOf(const job::Submission& submission,
                                                    const cluster::ClusterSpec& cluster,
                                                    const cluster::TaskId& task, int attempt,
                                                    int restarts) const {
  MUSTER_ASSIGN_OR_RETURN(const job::HostAssignment assignment, AssignmentOf(submission));
  return ssh::LaunchOf(submission, assignment, cluster, task, attempt, restarts);
}

absl::StatusOr<supervise::UpdatePlan> SshRunner::PlanUpdate(const job::Submission& current,
                                                            const cluster::ClusterSpec& cluster,
                                                            const job::Submission& next) const {
  return ssh::PlanUpdate(current, cluster, next);
}

std::string SshRunner::HostOf(const cluster::TaskId& task) const {
  const auto found = tasks_.find(task);
  return found == tasks_.end() ? "" : found->second.host;
}

absl::Status SshRunner::Reachability(const cluster::TaskId& task) const {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return absl::OkStatus();
  const AgentConnection& connection = *hosts_.at(found->second.host).connection;
  if (connection.is_up()) return absl::OkStatus();
  return connection.status().ok() ? absl::UnavailableError("connecting") : connection.status();
}

void SshRunner::SetPolicies(const job::Policies& policies) {
  policies_ = policies;
  Json json = PoliciesToJson(policies_);
  json["op"] = "policies";
  for (auto& [name, host] : hosts_) {
    host.connection->SetHostTimeout(policies_.host_timeout);
    if (host.configured) host.connection->Send(json);
  }
}

void SshRunner::Start(const supervise::TaskStart& start) {
  Task& task = tasks_.at(start.task);
  if (task.alive && (task.host != task.next_host || !hosts_.at(task.host).connection->is_up())) {
    // The previous attempt may have reached its host. It must not run beside this one, nor after
    // this one is withdrawn.
    hosts_.at(task.host).connection->Send({{"op", "forget"}, {"task", start.task.ToString()}});
  }
  task.host = task.next_host;
  task.attempt = start.attempt;
  task.alive = task.withdrawn = false;
  task.held.reset();
  ::unlink(dir_.progress(start.task).c_str());
  task.queued = StartToJson(start);
  (*task.queued)["op"] = "start";
  Host& host = hosts_.at(task.host);
  if (host.connection->is_up()) SendQueued(host);
}

void SshRunner::SendQueued(Host& host) {
  for (auto& [id, task] : tasks_) {
    if (task.host != host.placed.spec.name || !task.queued.has_value()) continue;
    host.connection->Send(*std::exchange(task.queued, std::nullopt));
    task.alive = true;
  }
}

void SshRunner::End(const cluster::TaskId& id, bool kill) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  Task& task = found->second;
  if (std::exchange(task.queued, std::nullopt).has_value()) task.withdrawn = true;
  if (!task.alive) return;
  hosts_.at(task.host).connection->Send(
      {{"op", "end"}, {"task", id.ToString()}, {"attempt", task.attempt}, {"kill", kill}});
}

// Reports tasks that ended while queued: no host runs them, so there is nothing to wait for.
void SshRunner::ReportWithdrawn() {
  for (auto& [id, task] : tasks_) {
    if (!std::exchange(task.withdrawn, false)) continue;
    events_.OnEnded(id, {.reason = absl::StrCat("stopped before ", task.host, " could start it")},
                    base::Clock::Real().Now());
  }
}

void SshRunner::Forget(const cluster::TaskId& id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  hosts_.at(found->second.host).connection->Send({{"op", "forget"}, {"task", id.ToString()}});
  tasks_.erase(found);
}

Json SshRunner::LogsOf(const Host& host) {
  Json logs = Json::object();
  for (const auto& [id, taken] : host.taken) logs[id.ToString()] = PositionToJson(taken);
  return logs;
}

Json SshRunner::SamplesOf(const Host& host) {
  Json samples = Json::object();
  for (const auto& [id, time] : host.sampled) samples[id.ToString()] = time;
  return samples;
}

void SshRunner::Receive(Host& host, const Message& message) {
  const std::string op = base::TextMember(message.head, "op");
  const std::string& name = host.placed.spec.name;
  if (op == "note") {
    events_.OnNote(base::TextMember(message.head, "kind"),
                   base::TextMember(message.head, "subject"),
                   absl::StrCat(name, ": ", base::TextMember(message.head, "message")));
    return;
  }
  if (op == "ports") {
    const Json ports = message.head.value("ports", Json::array());
    for (const Json& port : ports) {
      if (port.is_number_integer() && !host.used_ports.contains(port.get<int>())) {
        host.free_ports.push_back(port.get<int>());
      }
    }
    if (host.free_ports.empty()) host.port_error = base::TextMember(message.head, "error");
    return;
  }
  const auto id = cluster::TaskId::Parse(base::TextMember(message.head, "task"));
  // A host that a task has left may still report on it; such messages are ignored.
  if (id.ok() && tasks_.contains(*id) && tasks_.at(*id).host == name) {
    ReceiveTask(host, op, *id, message);
  }
}

void SshRunner::ReceiveTask(Host& host, const std::string& op, const cluster::TaskId& id,
                            const Message& message) {
  Task& task = tasks_.at(id);
  const Json& head = message.head;
  if (op == "log") return TakeLog(host, id, task, message);
  if (op == "progress") {
    if (base::MakeDirectories(dir_.run_dir(id)).ok()) {
      base::ReplaceFile(dir_.progress(id), message.body).IgnoreError();
    }
    return;
  }
  if (op == "sample") {
    supervise::Sample sample = SampleFromJson(head);
    host.sampled[id] = TimeToJson(sample.time);
    sample.time -= host.connection->skew();
    return events_.OnSample(id, sample);
  }
  // Messages about an earlier attempt, which was given up, are stale.
  if (!task.alive || (head.contains("attempt") && base::IntMember(head, "attempt") != task.attempt))
    return;
  if (op == "started") events_.OnStarted(id, static_cast<pid_t>(base::IntMember(head, "pid")));
  if (op == "ready") events_.OnReady(id);
  if (op == "stalled") {
    events_.OnStalled(id, absl::StrCat(base::TextMember(head, "why"), " on ", task.host));
  }
  if (op != "ended") return;
  // Subtracting the skew converts a time of the host's clock to the local clock.
  task.held = HeldEnd{.end = EndFromJson(head.value("end", Json::object())),
                      .time = TimeMember(head, "time") - host.connection->skew(),
                      .log = PositionFromJson(head.value("log", Json::object()))};
  task.held->end.unrequested = !base::BoolMember(head, "asked");
  ReportEnd(host, id, task);
}

void SshRunner::TakeLog(Host& host, const cluster::TaskId& id, Task& task, const Message& message) {
  absl::Status written;
  if (task.log == nullptr) {
    auto log = supervise::LogWriter::Open(
        dir_.logs(), id, {.rotate_bytes = policies_.log_rotate_bytes, .keep = policies_.log_keep});
    written = log.status();
    if (log.ok()) task.log = *std::move(log);
  }
  if (task.log != nullptr && !message.body.empty()) {
    const int attempt = static_cast<int>(base::IntMember(message.head, "attempt"));
    if (std::exchange(task.log_attempt, attempt) != attempt) task.log->BeginAttempt(attempt);
    written =
        task.log->Write(message.body, TimeMember(message.head, "time") - host.connection->skew());
  }
  if (!written.ok() && !std::exchange(task.lost_output, true)) {
    events_.OnNote("log", id.ToString(),
                   absl::StrCat("output is lost, the task continues: ", written.message()));
  }
  host.taken[id] = PositionFromJson(message.head.value("next", Json::object()));
  ReportEnd(host, id, task);
}

void SshRunner::ReportEnd(const Host& host, const cluster::TaskId& id, Task& task) {
  if (!task.held.has_value()) return;
  const auto taken = host.taken.find(id);
  // The end is reported only when all output before it has been received.
  if ((taken == host.taken.end() ? supervise::LogPosition() : taken->second) < task.held->log)
    return;
  const HeldEnd held = *std::exchange(task.held, std::nullopt);
  task.alive = false;
  events_.OnEnded(id, held.end, held.time);
}

void SshRunner::OnHostLost(Host& host, const std::string& why) {
  host.configured = false;
  host.sampled.clear();  // the clock of a new agent may differ
  const std::string& name = host.placed.spec.name;
  for (auto& [id, task] : tasks_) {
    // If a new agent already answers, a queued start is sent to it instead of counting as lost.
    const bool waits = task.queued.has_value() && !host.connection->is_up();
    if (task.host != name || (!task.alive && !waits)) continue;
    task.alive = false;
    task.queued.reset();
    task.held.reset();
    events_.OnEnded(id,
                    {.exit_code = kKilled,
                     .reason = absl::StrCat("lost with ", name, ": ", why),
                     .advice = absl::StrCat("check that ", name,
                                            " is up and reachable; policies.host_timeout limits "
                                            "the wait")},
                    base::Clock::Real().Now());
  }
}

void SshRunner::OnChildren() {
  int status = 0;
  for (pid_t pid = ::waitpid(-1, &status, WNOHANG); pid > 0;
       pid = ::waitpid(-1, &status, WNOHANG)) {
    for (auto& [name, host] : hosts_) {
      if (host.connection->OnChild(pid, status)) break;
    }
  }
}

absl::Time SshRunner::next_timer() const {
  const bool withdrawn = std::any_of(tasks_.begin(), tasks_.end(),
                                     [](const auto& task) { return task.second.withdrawn; });
  if (withdrawn) return absl::InfinitePast();
  absl::Time next = finish_by_.value_or(absl::InfiniteFuture());
  for (const auto& [name, host] : hosts_) next = std::min(next, host.connection->next_timer());
  return next;
}

void SshRunner::Advance() {
  ReportWithdrawn();
  for (auto& [name, host] : hosts_) host.connection->Advance();
}

bool SshRunner::Finish() {
  if (!finish_by_.has_value()) {
    finish_by_ = base::Clock::Real().Now() + kCloseTimeout;
    for (auto& [name, host] : hosts_) {
      if (host.connection->is_up()) host.connection->Close();
    }
  }
  if (base::Clock::Real().Now() >= *finish_by_) return true;
  return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
    return !host.second.connection->is_up() || host.second.connection->all_acknowledged();
  });
}

}  // namespace muster::ssh
