// A task has one stream to every server. The caller's thread posts messages to an outbox per
// stream; a receiver thread per stream handles the answers. They share a count of outstanding
// answers:
//
//   Begin()        due_[server][bucket] = true for every bucket, pending_ = their number
//   VALUES         due_ = false, copy outside of the mutex, --pending_      (receiver threads)
//   Wait()         until pending_ == 0, or an error
//
// CLAIM and ROWS_PULL reuse pending_ as a flag, so they must not overlap with a step: the caller
// waits for their answer before Begin().
#include "train/ps/client.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "train/core/waiting.h"
#include "train/wire/admission.h"
#include "train/wire/watchdog.h"

namespace muster::train {
namespace {

using wire::Frame;

// Longer than the 10 s for which a server waits until the task's earlier stream has ended
// (members.cc).
constexpr absl::Duration kWelcomeTimeout = absl::Seconds(15);
constexpr absl::Duration kStatusTimeout = absl::Seconds(5);

// Returns whether a retry may succeed. AlreadyExists is transient: the slot is free once the server
// has detected the loss of the process that holds it.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) ||
         absl::IsDeadlineExceeded(status) || absl::IsAlreadyExists(status);
}

}  // namespace

PsClient::PsClient(wire::Transport& transport, Options options)
    : transport_(transport), options_(std::move(options)) {
  absl::MutexLock lock(&mutex_);
  for (const ShardShape& shape : options_.shapes) {
    due_.emplace_back(static_cast<size_t>(shape.bucket_count()), false);
  }
}

PsClient::~PsClient() { Disconnect(); }

void PsClient::Disconnect() {
  for (Link& link : links_) {
    // All streams are cancelled before the first one is joined, so that the receivers end in
    // parallel.
    if (link.connection != nullptr) link.connection->Cancel();
  }
  links_.clear();
}

absl::StatusOr<PsClient::Welcome> PsClient::Connect(int server, const Waiting& waiting) {
  Link& link = links_[server];
  Frame hello = options_.hello;
  hello.set_kind(Frame::HELLO);
  MUSTER_ASSIGN_OR_RETURN(
      link.connection, transport_.Connect(options_.addresses[server], hello,
                                          std::min(wire::kConnectAttemptTimeout, waiting.left())));
  const absl::Duration timeout = std::min(kWelcomeTimeout, waiting.left());
  wire::Watchdog watchdog(*link.connection);
  watchdog.Arm(base::Clock::Real().Now() + timeout);
  auto welcome = AwaitWelcome(*link.connection);
  if (!watchdog.Disarm() && !welcome.ok()) return NoAnswer(timeout);
  return welcome;
}

absl::StatusOr<PsClient::Welcome> PsClient::AwaitWelcome(wire::Connection& connection) {
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const wire::Incoming answer, connection.Receive());
    const Frame& frame = answer.frame;
    if (frame.kind() == Frame::ERROR) return wire::StatusOf(frame);
    // A SET_LIMIT between the server's registration of this task and its WELCOME arrives first.
    if (frame.kind() == Frame::LIMIT) limit = std::min(limit, frame.version());
    // VALUES for an earlier stream of this task may come first. They are dropped and pulled again.
    if (frame.kind() != Frame::WELCOME) continue;
    return Welcome{{frame.generation(), frame.version(), frame.sequence(),
                    std::min(limit, frame.limit()), base::ParseJson(frame.text())},
                   frame.active()};
  }
}

// Tries all servers once. Returns nullopt if one is not ready yet and names it in `missing`.
absl::StatusOr<std::optional<Position>> PsClient::TryJoin(const Waiting& waiting,
                                                          std::string& missing) {
  Disconnect();
  links_.resize(options_.addresses.size());
  std::optional<Position> position;
  for (size_t server = 0; server < links_.size(); ++server) {
    const std::string name = absl::StrCat("ps:", server);
    auto welcome = Connect(static_cast<int>(server), waiting);
    if (!welcome.ok()) {
      if (!IsTransient(welcome.status())) return base::Annotate(welcome.status(), name);
      if (waiting.left() == absl::ZeroDuration() && !missing.empty())
        return std::nullopt;  // this attempt was cut short: keep the earlier reason
      missing = absl::IsAlreadyExists(welcome.status())
                    ? absl::StrCat("a free slot: ", welcome.status().message())
                    : absl::StrCat(name, " (", options_.addresses[server], ": ",
                                   welcome.status().message(), ")");
      return std::nullopt;
    }
    const Position& at = welcome->position;
    if (!welcome->active || (position && position->generation != at.generation)) {
      missing = absl::StrCat("the chief to initialize ", name);
      return std::nullopt;
    }
    if (!position) {
      position = at;
    } else if (options_.shapes[server].bucket_count() > 0) {
      // Servers may be one version apart: resume at the older one. A server without buckets does
      // not count steps.
      position->step = std::min(position->step, at.step);
      position->limit = std::min(position->limit, at.limit);
      // Without shared steps only ps:0, the first server, counts batches; the others report the
      // cursors with which the generation began.
      if (options_.shared_steps) position->sequence = std::min(position->sequence, at.sequence);
    }
  }
  return position;
}

absl::StatusOr<Position> PsClient::Join(absl::Duration timeout) {
  Waiting waiting(timeout, options_.report_interval, options_.log);
  std::string missing;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const std::optional<Position> position, TryJoin(waiting, missing));
    if (position.has_value()) {
      Start(*position);
      return *position;
    }
    MUSTER_RETURN_IF_ERROR(waiting.Pause(missing));
  }
}

void PsClient::Start(const Position& position) {
  generation_ = position.generation;
  limit_ = position.limit;
  {
    absl::MutexLock lock(&mutex_);
    status_ = absl::OkStatus();
    expected_ = -1;
    pending_ = 0;
    rows_.reset();
    for (auto& buckets : due_) buckets.assign(buckets.size(), false);
  }
  for (size_t server = 0; server < links_.size(); ++server) {
    Link& link = links_[server];
    link.outbox = std::make_unique<wire::Outbox>(*link.connection);
    link.receiver = std::jthread([this, server] { ReceiveFrom(static_cast<int>(server)); });
  }
}

void PsClient::Fail(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  // Keeps the first error; Cancelled only means that the job is complete.
  if (status_.ok() || absl::IsCancelled(status_)) status_ = std::move(status);
}

void PsClient::ReceiveFrom(int server) {
  for (;;) {
    auto message = links_[server].connection->Receive();
    if (!message.ok()) {
      const std::string name = absl::StrCat("ps:", server);
      Fail(absl::IsInvalidArgument(message.status())
               ? base::Annotate(message.status(), name)
               : absl::UnavailableError(absl::StrCat(name, ": the connection was lost")));
      return;
    }
    Handle(server, *std::move(message));
  }
}

void PsClient::Handle(int server, wire::Incoming message) {
  const Frame& frame = message.frame;
  if (frame.kind() == Frame::FINISH) {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
    return;
  }
  if (frame.kind() != Frame::ERROR && frame.generation() != generation_)
    return;  // of an earlier generation
  switch (frame.kind()) {
    case Frame::VALUES:
      HandleValues(server, message);
      return;
    case Frame::ROWS: {
      absl::MutexLock lock(&mutex_);
      rows_ = std::move(message.payload);
      pending_ = 0;
      return;
    }
    case Frame::GRANT: {
      granted_step_ = frame.version();
      absl::MutexLock lock(&mutex_);
      pending_ = 0;
      return;
    }
    case Frame::LIMIT: {
      absl::MutexLock lock(&mutex_);
      limit_ = std::min<int64_t>(limit_, frame.version());
      if (!options_.shared_steps) granted_step_ = frame.version();
      CancelAtLimit();
      return;
    }
    case Frame::ERROR:
      Fail(base::Annotate(wire::StatusOf(frame), absl::StrCat("ps:", server)));
      return;
    default:
      Fail(absl::InternalError(
          absl::StrCat("ps:", server, " sent ", Frame::Kind_Name(frame.kind()))));
  }
}

bool PsClient::Fits(int server, int bucket, size_t bytes) const {
  const ShardShape& shape = options_.shapes[server];
  if (shape.is_dense(bucket)) {
    return bytes == static_cast<size_t>(shape.buckets[bucket].elements) * sizeof(float);
  }
  if (bytes == 0) return true;
  return !shape.is_table(bucket) && bytes == static_cast<size_t>(shape.buffer_bytes);
}

void PsClient::HandleValues(int server, const wire::Incoming& message) {
  const Frame& frame = message.frame;
  const size_t bucket = frame.bucket();
  {
    absl::MutexLock lock(&mutex_);
    const bool due = bucket < due_[server].size() && due_[server][bucket];
    if (!due || (options_.shared_steps && frame.version() < expected_)) return;
    due_[server][bucket] = false;
    // Buffers do not count: with backup tasks their version follows the chief's own steps.
    if (frame.bucket() != static_cast<uint32_t>(options_.shapes[server].buffer_bucket())) {
      reached_ = std::min(reached_.value_or(frame.version()), frame.version());
    }
  }
  if (!Fits(server, static_cast<int>(bucket), message.payload.size())) {
    Fail(absl::InternalError(absl::StrCat(
        "ps:", server, " sent ", message.payload.size(), " bytes as bucket ", bucket,
        ", which has a different size; run the same version of the trainer in all tasks")));
    return;
  }
  // Outside of the mutex, so that buckets are received in parallel. pending_ counts the bucket
  // until its values are in place.
  if (message.payload.size() > 0) {
    options_.receive(server, static_cast<int>(bucket), message.payload);
  }
  absl::MutexLock lock(&mutex_);
  --pending_;
}

// Wakes the waiting thread at the end of the job. With shared steps the current step may still be
// below the limit; then there is more to do.
void PsClient::CancelAtLimit() {
  if (options_.shared_steps && version_ < limit_) return;
  if (status_.ok()) status_ = absl::CancelledError("the job is complete");
}

int64_t PsClient::reached() const {
  absl::MutexLock lock(&mutex_);
  return reached_.value_or(expected_);
}

Frame PsClient::FrameOf(Frame::Kind kind, int bucket) const {
  Frame frame;
  frame.set_kind(kind);
  frame.set_generation(generation_);
  frame.set_version(version_);
  frame.set_sequence(sequence_);
  frame.set_bucket(static_cast<uint32_t>(bucket));
  return frame;
}

void PsClient::Expect(int64_t version, bool tables, bool buffers) {
  absl::MutexLock lock(&mutex_);
  expected_ = version;
  reached_.reset();
  pending_ = 0;
  for (size_t server = 0; server < due_.size(); ++server) {
    const ShardShape& shape = options_.shapes[server];
    for (int bucket = 0; bucket < shape.bucket_count(); ++bucket) {
      const bool due = shape.is_dense(bucket) || (shape.is_table(bucket) ? tables : buffers);
      due_[server][bucket] = due;
      pending_ += due ? 1 : 0;
    }
  }
}

absl::Status PsClient::PullAll(int64_t version) {
  version_ = version;
  Expect(version, /*tables=*/false, /*buffers=*/true);
  for (size_t server = 0; server < links_.size(); ++server) {
    const ShardShape& shape = options_.shapes[server];
    for (int bucket = 0; bucket < shape.bucket_count(); ++bucket) {
      if (shape.is_table(bucket)) continue;  // rows are pulled when they are needed
      links_[server].outbox->Post({FrameOf(Frame::PULL, bucket)});
    }
  }
  return Await("the values");
}

void PsClient::Begin(int64_t version, int64_t sequence) {
  version_ = version;
  sequence_ = sequence;
  Expect(version + 1, /*tables=*/true, /*buffers=*/options_.owns_buffers);
  if (!options_.shared_steps) return;
  absl::MutexLock lock(&mutex_);
  CancelAtLimit();  // LIMIT may have arrived since the caller checked
}

void PsClient::Push(int server, int bucket, EncodedPush push) {
  wire::Outgoing message{FrameOf(Frame::PUSH, bucket)};
  std::move(push).WriteTo(message);
  links_[server].outbox->Post(std::move(message));
}

absl::Status PsClient::Wait() { return Await("the other tasks"); }

absl::Status PsClient::Await(const absl::Condition& ready,
                             absl::FunctionRef<std::string()> missing) {
  const absl::Time deadline = base::Clock::Real().Now() + options_.peer_timeout;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const absl::Duration left = deadline - base::Clock::Real().Now();
      if (mutex_.AwaitWithTimeout(ready, std::min(options_.report_interval, left))) {
        return status_;
      }
    }
    const std::string whom = missing();
    if (base::Clock::Real().Now() > deadline) return LostContact(options_.peer_timeout, whom);
    options_.log(absl::StrCat("step ", version_.load(), ": waiting for ", whom));
  }
}

absl::Status PsClient::Await(const char* what) {
  return Await(absl::Condition(this, &PsClient::Ready), [&] {
    const std::string missing = MissingPeers();
    return missing.empty() ? std::string(what) : missing;
  });
}

absl::Status PsClient::AwaitEnd() {
  {
    absl::MutexLock lock(&mutex_);
    if (absl::IsCancelled(status_)) status_ = absl::OkStatus();  // set by CancelAtLimit()
  }
  const absl::Status status =
      Await(absl::Condition(this, &PsClient::Ended), [] { return "the chief to end the job"; });
  absl::MutexLock lock(&mutex_);
  return finished_ ? absl::OkStatus() : status;
}

std::string PsClient::MissingPeers() {
  std::set<std::string> names;
  std::set<std::string> silent;
  for (size_t server = 0; server < options_.addresses.size(); ++server) {
    auto control =
        PsControl::Connect(transport_, options_.addresses[server], options_.hello, kStatusTimeout);
    const auto status = control.ok() ? (*control)->Status(kStatusTimeout) : control.status();
    if (!status.ok()) {
      silent.insert(absl::StrCat("ps:", server, " (", status.status().message(), ")"));
      continue;
    }
    for (const std::string& task : status->missing) names.insert(task);
  }
  // If a server does not answer, name only it: tasks that it blocks are reported as missing, too.
  return absl::StrJoin(silent.empty() ? names : silent, ", ");
}

absl::StatusOr<bool> PsClient::Claim() {
  {
    absl::MutexLock lock(&mutex_);
    pending_ = 1;
  }
  links_[0].outbox->Post({FrameOf(Frame::CLAIM, 0)});
  const absl::Status status = Await("a step");
  if (absl::IsCancelled(status)) return false;
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<wire::Payload> PsClient::PullRows(int server, int bucket, int64_t version,
                                                 const std::vector<int64_t>& rows) {
  auto copy = std::make_shared<std::vector<int64_t>>(rows);
  {
    absl::MutexLock lock(&mutex_);
    rows_.reset();
    pending_ = 1;
  }
  wire::Outgoing pull{FrameOf(Frame::ROWS_PULL, bucket),
                      {{copy->data(), copy->size() * sizeof(int64_t), copy}}};
  pull.frame.set_version(version);
  links_[server].outbox->Post(std::move(pull));
  MUSTER_RETURN_IF_ERROR(Await("rows of a table"));
  absl::MutexLock lock(&mutex_);
  if (!rows_.has_value()) return absl::InternalError(absl::StrCat("ps:", server, " sent no rows"));
  return *std::exchange(rows_, std::nullopt);
}

}  // namespace muster::train
