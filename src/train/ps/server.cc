#include "train/ps/server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "train/ps/control.h"

namespace muster::train {
namespace {

using wire::ErrorOf;
using wire::Frame;

constexpr absl::Duration kPollInterval = absl::Seconds(1);

wire::Outgoing Ok(std::string text = "") {
  wire::Outgoing ok;
  ok.frame.set_kind(Frame::OK);
  ok.frame.set_text(std::move(text));
  return ok;
}

Frame FinishFrame() {
  Frame finish;
  finish.set_kind(Frame::FINISH);
  return finish;
}

absl::Status NoArea(int area) {
  return absl::InvalidArgumentError(absl::StrCat("there is no area ", area));
}

absl::Status NoGeneration() {
  return absl::FailedPreconditionError("the chief has not sent PREPARE to this server yet");
}

}  // namespace

ParameterServer::ParameterServer(Options options)
    : options_(std::move(options)),
      admission_({.self = options_.self,
                  .tasks = options_.training_tasks,
                  .cluster = options_.cluster,
                  .log = options_.log}),
      members_(options_.training_tasks) {}

ParameterServer::~ParameterServer() { members_.Disconnect(); }

std::shared_ptr<Generation> ParameterServer::generation() const {
  absl::MutexLock lock(&mutex_);
  return generation_;
}

bool ParameterServer::finished() const {
  absl::MutexLock lock(&mutex_);
  return finished_;
}

void ParameterServer::Serve(wire::Connection& connection, const wire::Caller& caller) {
  const auto permit = admission_.Admit(caller);
  if (!permit.ok()) return wire::Refuse(connection, permit.status());
  absl::Status status;
  if (caller.hello.service() != Frame::PARAMETERS) {
    status = absl::InvalidArgumentError("a ps task serves only PARAMETERS");
  } else if (caller.hello.control()) {
    status = ServeControl(connection, /*is_chief=*/permit->rank == 0);
  } else {
    status = ServeTask(connection, permit->rank, caller.hello);
  }
  if (!status.ok() && !absl::IsUnavailable(status)) connection.Send(ErrorOf(status));
}

absl::Status ParameterServer::ServeTask(wire::Connection& connection, int rank,
                                        const Frame& hello) {
  const std::string name = members_.task(rank).ToString();
  auto outbox = std::make_shared<wire::Outbox>(connection);
  if (absl::Status taken = members_.Join(rank, hello.peer(), outbox); !taken.ok()) {
    outbox->CloseAfterSending();
    return taken;
  }
  // After members_.Join(): Prepare() first replaces the generation and then disconnects the
  // members, so a stream that still gets the old generation here is among those that it
  // disconnects.
  const std::shared_ptr<Generation> joined = generation();
  wire::Outgoing welcome;
  welcome.frame.set_kind(Frame::WELCOME);
  const bool active = joined != nullptr && joined->active();
  welcome.frame.set_active(active);
  if (active) {
    welcome.frame.set_generation(joined->number());
    welcome.frame.set_version(joined->step());
    welcome.frame.set_sequence(joined->CursorOf(rank));
    welcome.frame.set_limit(joined->limit());
    welcome.frame.set_text(joined->data().dump());
    options_.log(absl::StrCat(name, " joined at step ", joined->step()));
  }
  outbox->Post(std::move(welcome));
  // Finish() may have notified the members before this task was one of them.
  if (finished()) outbox->Post({FinishFrame()});
  absl::Status status;
  // An inactive server ends the stream here. The task connects again until the chief has sent
  // ACTIVATE.
  while (active && status.ok()) {
    auto message = connection.Receive();
    status = message.ok() ? HandleTask(rank, *std::move(message), *joined) : message.status();
  }
  if (active) {
    // Before members_.Leave(), which admits the next attempt: its claim must not be reset here.
    joined->Leave(rank);
    options_.log(absl::StrCat(name, " left at step ", joined->step()));
  }
  members_.Leave(rank, outbox.get());  // from here on the task may join again
  if (!status.ok() && !absl::IsUnavailable(status)) outbox->Post(ErrorOf(status));
  outbox->CloseAfterSending();
  return absl::UnavailableError("");  // the error, if any, was posted above
}

absl::Status ParameterServer::HandleTask(int rank, wire::Incoming message, Generation& generation) {
  if (message.frame.generation() != generation.number()) {
    return absl::AbortedError("the message belongs to another generation");
  }
  switch (message.frame.kind()) {
    case Frame::PUSH:
      return generation.Push(rank, message.frame, std::move(message.payload));
    case Frame::PULL:
      return generation.Pull(rank, message.frame);
    case Frame::ROWS_PULL:
      return generation.PullRows(rank, message.frame, message.payload);
    case Frame::CLAIM:
      generation.Claim(rank);
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a task must not send ", Frame::Kind_Name(message.frame.kind())));
  }
}

absl::Status ParameterServer::ServeControl(wire::Connection& connection, bool is_chief) {
  if (!connection.Send(Ok())) return absl::UnavailableError("gone");
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const wire::Incoming message, connection.Receive());
    auto answer = HandleControl(message, is_chief);
    if (!connection.Send(answer.ok() ? *std::move(answer) : ErrorOf(answer.status()))) {
      return absl::UnavailableError("gone");
    }
  }
}

absl::StatusOr<wire::Outgoing> ParameterServer::HandleControl(const wire::Incoming& message,
                                                              bool is_chief) {
  const Frame& frame = message.frame;
  if (frame.kind() == Frame::STATUS) return Status();
  if (!is_chief) {
    return absl::PermissionDeniedError(absl::StrCat("only ", members_.task(0).ToString(),
                                                    " may send ", Frame::Kind_Name(frame.kind())));
  }
  if (frame.kind() == Frame::PREPARE) return Prepare(frame);
  if (frame.kind() == Frame::FINISH) {
    Finish();
    return Ok();
  }
  const std::shared_ptr<Generation> current = generation();
  if (current == nullptr) return NoGeneration();
  if (frame.generation() != current->number()) {
    return absl::AbortedError("the request belongs to another generation");
  }
  switch (frame.kind()) {
    case Frame::ASSIGN:
      return Assign(message);
    case Frame::ACTIVATE:
      current->Activate();
      return Ok();
    case Frame::SNAPSHOT: {
      wire::Outgoing begun = Ok(current->BeginSnapshot().dump());
      begun.frame.set_sequence(current->snapshot_number());
      return begun;
    }
    case Frame::READ:
      return Read(frame);
    case Frame::SET_LIMIT:
      current->SetLimit(frame.version());
      return Ok();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a control stream must not send ", Frame::Kind_Name(frame.kind())));
  }
}

// Tasks stay until FINISH: before it, a lost server would take their work with it.
void ParameterServer::Finish() {
  {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  // Before the tasks get FINISH and exit: a launcher may then send SIGTERM to the servers.
  if (options_.on_finish) options_.on_finish();
  members_.SendToAll(FinishFrame());
}

// Disconnects the tasks of the previous generation; they rejoin this one.
absl::StatusOr<wire::Outgoing> ParameterServer::Prepare(const Frame& frame) {
  const auto json = base::ParseJson(frame.text());
  if (json.is_discarded()) return absl::InvalidArgumentError("PREPARE without a JSON description");
  MUSTER_ASSIGN_OR_RETURN(GenerationSpec spec, GenerationSpec::FromJson(json));
  options_.log(absl::StrCat("holds ", spec.shape.elements + spec.shape.table_elements,
                            " parameters from step ", spec.step));
  std::shared_ptr<Generation> next;
  try {
    MUSTER_ASSIGN_OR_RETURN(next, Generation::Create(std::move(spec), members_));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: ", options_.self.ToString(),
                     " cannot hold its part of the model; use more ps tasks"));
  }
  {
    absl::MutexLock lock(&mutex_);
    generation_ = std::move(next);
  }
  members_.Disconnect();
  return Ok();
}

absl::StatusOr<wire::Outgoing> ParameterServer::Assign(const wire::Incoming& message) {
  const std::shared_ptr<Generation> current = generation();
  if (current->active()) return absl::FailedPreconditionError("ASSIGN to an active shard");
  if (!Frame::Area_IsValid(message.frame.area())) return NoArea(message.frame.area());
  const absl::Span<std::byte> area =
      current->shard().Assign(static_cast<Area>(message.frame.area()));
  const auto size = static_cast<int64_t>(message.payload.size());
  const int64_t offset = message.frame.offset();
  if (offset < 0 || offset > static_cast<int64_t>(area.size()) ||
      size > static_cast<int64_t>(area.size()) - offset) {
    return absl::OutOfRangeError("ASSIGN beyond the shard");
  }
  message.payload.Copy(0, message.payload.size(), area.data() + offset);
  return Ok();
}

absl::StatusOr<wire::Outgoing> ParameterServer::Read(const Frame& frame) {
  const std::shared_ptr<Generation> current = generation();
  if (!Frame::Area_IsValid(frame.area())) return NoArea(frame.area());
  if (frame.sequence() == 0) return absl::FailedPreconditionError("READ without SNAPSHOT");
  if (frame.sequence() != current->snapshot_number()) {
    return absl::AbortedError("the snapshot was replaced by a later one");
  }
  current->shard().FinishSnapshot();
  const auto area = current->shard().Snapshot(static_cast<Area>(frame.area()));
  if (frame.offset() < 0 || frame.count() < 0 ||
      frame.offset() > static_cast<int64_t>(area.size()) ||
      frame.count() > static_cast<int64_t>(area.size()) - frame.offset()) {
    return absl::OutOfRangeError("READ beyond the shard");
  }
  // The chunk refers to the snapshot without a copy; `current` keeps it alive until it is sent,
  // even if a PREPARE replaces the generation meanwhile.
  wire::Outgoing data;
  data.frame.set_kind(Frame::DATA);
  data.payload.push_back(
      {area.data() + frame.offset(), static_cast<size_t>(frame.count()), current});
  return data;
}

wire::Outgoing ParameterServer::Status() {
  const std::shared_ptr<Generation> current = generation();
  PsStatus status;
  status.connected = members_.connected();
  if (current != nullptr) {
    status.active = current->active();
    status.generation = current->number();
    status.step = current->step();
    status.missing = current->Missing();
  }
  return Ok(status.ToJson().dump());
}

bool ParameterServer::AwaitFinish(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(this, &ParameterServer::IsFinished), timeout);
}

absl::Status ParameterServer::Run(absl::Duration timeout, absl::Duration grace) {
  const absl::Duration interval = std::min({kPollInterval, timeout, options_.report_interval});
  bool served = false;
  absl::Duration unconnected, reported;
  absl::Time polled = base::Clock::Real().Now();
  while (!AwaitFinish(interval)) {
    const absl::Time now = base::Clock::Real().Now();
    // A process that was suspended has not polled for long: do not count that time, since its tasks
    // may be about to connect.
    unconnected += std::min(now - std::exchange(polled, now), 2 * interval);
    if (members_.connected() > 0) {
      served = true;
      unconnected = reported = absl::ZeroDuration();
    } else if (unconnected > timeout) {
      const std::string why =
          absl::StrCat("no task was connected to ", options_.self.ToString(), " for ",
                       absl::FormatDuration(timeout), "; is the chief running?");
      return served ? absl::UnavailableError(why) : absl::DeadlineExceededError(why);
    } else if (unconnected - reported > options_.report_interval) {
      reported = unconnected;
      options_.log("no task is connected; waiting for the chief");
    }
  }
  const absl::Time deadline = base::Clock::Real().Now() + grace;
  while (members_.connected() > 0 && base::Clock::Real().Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::OkStatus();
}

}  // namespace muster::train
