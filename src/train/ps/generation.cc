// A bucket of a sync generation collects one push per task in a Round:
//
//             push of version v, quorum not reached
//               ┌───┐
//               v   │
//    ──────> collecting at v ──push of v completes the quorum──> apply, in order of rank
//               ^                                                      │
//               └───── version v + 1, round cleared <── VALUES to all that contributed
//
// A push of an older version is not applied; its sender gets the newest values. Without shared
// steps there are no rounds: a push is applied on arrival, at most once for each (task, sequence).
#include "train/ps/generation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::train {
namespace {

std::optional<int64_t> StalenessOf(const GenerationSpec& spec) {
  if (spec.strategy == Strategy::kBounded) return spec.staleness;
  return std::nullopt;
}

absl::Status NoBucket(uint32_t bucket) {
  return absl::InvalidArgumentError(absl::StrCat("there is no bucket ", bucket));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Generation>> Generation::Create(GenerationSpec spec,
                                                               Members& members) {
  MUSTER_ASSIGN_OR_RETURN(
      Schedule schedule,
      Schedule::FromJson(spec.schedule, spec.optimizer.learning_rate, spec.total_steps));
  if (static_cast<int>(spec.cursors.size()) != members.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the chief has ", spec.cursors.size(),
                                                   " training tasks, this server ", members.size(),
                                                   "; start all tasks with the same cluster"));
  }
  return std::shared_ptr<Generation>(new Generation(std::move(spec), schedule, members));
}

Generation::Generation(GenerationSpec spec, Schedule schedule, Members& members)
    : spec_(std::move(spec)),
      members_(members),
      shard_(spec_.shape, {.optimizer = spec_.optimizer,
                           .schedule = schedule,
                           .version = spec_.step,
                           .keep_previous = lockstep()}),
      limit_(spec_.limit),
      rounds_(static_cast<size_t>(spec_.shape.bucket_count())),
      claims_(spec_.cursors, spec_.step, spec_.limit, StalenessOf(spec_)),
      buckets_done_(spec_.cursors.size(), 0) {
  for (Round& round : rounds_) {
    absl::MutexLock lock(&round.mutex);
    round.contributions.resize(spec_.cursors.size());
    round.sequences = spec_.cursors;
  }
}

void Generation::Activate() {
  if (active_) return;
  shard_.Activate();
  shard_.PrepareSnapshots();
  active_ = true;
}

int64_t Generation::step() const {
  if (!shared_steps() && spec_.counts_steps) {
    absl::MutexLock lock(&claims_mutex_);
    return claims_.completed();
  }
  // The step is complete when all buckets have it: the oldest version counts.
  std::optional<int64_t> step;
  for (int bucket = 0; bucket < spec_.shape.bucket_count(); ++bucket) {
    if (is_buffers(bucket) && !lockstep()) continue;  // they follow the chief's own steps
    step = std::min(step.value_or(shard_.version(bucket)), shard_.version(bucket));
  }
  return step.value_or(spec_.step);
}

int64_t Generation::CursorOf(int rank) const {
  if (shared_steps()) return step();
  absl::MutexLock lock(&claims_mutex_);
  return claims_.cursors()[rank];
}

// Returns how many pushes complete an update. Only the chief pushes buffers.
int Generation::Quorum(int bucket) const {
  if (is_buffers(bucket)) return 1;
  return static_cast<int>(std::max<int64_t>(1, members_.size() - spec_.backup_tasks));
}

absl::Status Generation::Check(int rank, const wire::Frame& frame, size_t bytes) const {
  MUSTER_ASSIGN_OR_RETURN(const int64_t expected, PushBytes(spec_.shape, frame));
  const auto bucket = static_cast<int>(frame.bucket());
  if (is_buffers(bucket) && rank != 0) {
    return absl::InvalidArgumentError("only the chief may set the model's buffers");
  }
  if (expected == static_cast<int64_t>(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("bucket ", bucket, " has ", expected, " bytes, not ", bytes));
}

absl::StatusOr<Generation::Contribution> Generation::Read(int rank, const wire::Frame& frame,
                                                          wire::Payload payload) const {
  MUSTER_RETURN_IF_ERROR(Check(rank, frame, payload.size()));
  Contribution contribution{
      .present = true, .skipped = frame.skipped(), .precision = frame.precision()};
  const auto bucket = static_cast<int>(frame.bucket());
  if (frame.skipped()) return contribution;
  if (spec_.shape.is_dense(bucket)) {
    contribution.dense = std::move(payload);
    return contribution;
  }
  if (is_buffers(bucket)) {
    contribution.buffers = payload.InOnePiece();
    return contribution;
  }
  const int table = bucket - spec_.shape.table_bucket(0);
  contribution.rows =
      RowsPush(payload, frame.precision(), frame.count(), spec_.shape.tables[table].width);
  MUSTER_RETURN_IF_ERROR(shard_.CheckRows(table, contribution.rows.rows()));
  return contribution;
}

absl::Status Generation::Push(int rank, const wire::Frame& frame, wire::Payload payload) {
  if (frame.version() >= limit_ && shared_steps())
    return absl::OkStatus();  // past the limit, which every task is sent
  MUSTER_ASSIGN_OR_RETURN(Contribution contribution, Read(rank, frame, std::move(payload)));
  return shared_steps() ? PushSync(rank, frame, std::move(contribution))
                        : PushAsync(rank, frame, std::move(contribution));
}

absl::Status Generation::PushSync(int rank, const wire::Frame& frame, Contribution contribution) {
  const auto bucket = static_cast<int>(frame.bucket());
  Round& round = rounds_[bucket];
  absl::MutexLock lock(&round.mutex);
  // The chief's buffers arrive once a step; with backup tasks, only in the steps it takes part in.
  const int64_t version =
      is_buffers(bucket) && !lockstep() ? frame.version() : shard_.version(bucket);
  // A correct task cannot get here: it computes from values that this server has sent.
  if (frame.version() > version) {
    return absl::InternalError(absl::StrCat("a gradient of version ", frame.version(),
                                            " for a bucket of version ", version));
  }
  if (frame.version() < version) {  // a duplicate, or too late
    SendValues(rank, bucket, version);
    return absl::OkStatus();
  }
  Contribution& place = round.contributions[rank];
  if (place.present) return absl::OkStatus();  // an earlier attempt pushed the same
  place = std::move(contribution);
  if (++round.arrived < Quorum(bucket)) return absl::OkStatus();
  // With the mutex held, so that the pushes of the next version wait until the round is cleared.
  // Other buckets are not affected: each has its own mutex.
  ApplyPushes(bucket, round.contributions);
  round.arrived = 0;
  for (size_t other = 0; other < round.contributions.size(); ++other) {
    if (!round.contributions[other].present) continue;
    round.contributions[other] = {};
    SendValues(static_cast<int>(other), bucket, version + 1);
  }
  return absl::OkStatus();
}

void Generation::ApplyPushes(int bucket, std::vector<Contribution>& contributions) {
  std::vector<const Contribution*> counted;
  for (const Contribution& contribution : contributions) {
    if (contribution.present && !contribution.skipped) counted.push_back(&contribution);
  }
  if (spec_.shape.is_table(bucket)) {
    ApplyRows(bucket, counted);
  } else if (spec_.shape.is_dense(bucket)) {
    std::vector<DensePush> gradients;
    std::vector<Gradient*> pointers;
    gradients.reserve(counted.size());
    for (const Contribution* contribution : counted) {
      gradients.emplace_back(contribution->dense, contribution->precision);
      pointers.push_back(&gradients.back());
    }
    shard_.Apply(bucket, pointers, 1.0F / static_cast<float>(std::max<size_t>(1, counted.size())));
  } else {
    const wire::Chunk bytes = counted.empty() ? wire::Chunk() : counted.front()->buffers;
    shard_.SetBuffers({static_cast<const std::byte*>(bytes.data), bytes.size});
  }
}

void Generation::ApplyRows(int bucket, absl::Span<const Contribution* const> contributions) {
  std::vector<RowGradients> gradients;
  for (const Contribution* contribution : contributions) {
    gradients.push_back({contribution->rows.rows(), contribution->rows.gradients()});
  }
  shard_.ApplyRows(bucket - spec_.shape.table_bucket(0), gradients,
                   1.0F / static_cast<float>(std::max<size_t>(1, gradients.size())));
}

absl::Status Generation::PushAsync(int rank, const wire::Frame& frame, Contribution contribution) {
  const auto bucket = static_cast<int>(frame.bucket());
  Round& round = rounds_[bucket];
  {
    absl::MutexLock lock(&round.mutex);
    if (frame.sequence() < round.sequences[rank]) {  // a duplicate
      SendValues(rank, bucket, shard_.version(bucket));
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(CheckClaim(rank, frame.sequence()));
    round.sequences[rank] = frame.sequence() + 1;
    std::vector<Contribution> one;
    one.push_back(std::move(contribution));
    ApplyPushes(bucket, one);
    SendValues(rank, bucket, shard_.version(bucket));
  }
  CountAsync(rank);
  return absl::OkStatus();
}

// The server that counts the steps accepts only steps that it has granted. Takes claims_mutex_
// while the caller holds the Round's mutex: the order in generation.h.
absl::Status Generation::CheckClaim(int rank, int64_t sequence) const {
  if (!spec_.counts_steps) return absl::OkStatus();
  absl::MutexLock lock(&claims_mutex_);
  if (claims_.IsComputing(rank) && claims_.cursors()[rank] == sequence) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("step ", sequence, " of ", members_.task(rank).ToString(), " was not granted"));
}

// Counts a pushed bucket. A task's step is complete when all its buckets are. Duplicates are not
// counted, so a step that two attempts of a task pushed in parts completes once.
void Generation::CountAsync(int rank) {
  if (!spec_.counts_steps) return;
  absl::MutexLock lock(&claims_mutex_);
  // Tasks other than the chief do not push the bucket of the buffers.
  const bool others_buffers = spec_.shape.buffer_bytes > 0 && rank != 0;
  const int expected = spec_.shape.bucket_count() - (others_buffers ? 1 : 0);
  if (++buckets_done_[rank] < expected) return;
  buckets_done_[rank] = 0;
  claims_.Complete(rank);
  SendGrants();
}

void Generation::Claim(int rank) {
  absl::MutexLock lock(&claims_mutex_);
  claims_.Request(rank);
  SendGrants();
}

void Generation::Leave(int rank) {
  absl::MutexLock lock(&claims_mutex_);
  claims_.Leave(rank);
  SendGrants();
}

// Posting only enqueues, so holding claims_mutex_ does not block on a slow task.
void Generation::SendGrants() {
  for (const int rank : claims_.TakeGrants()) {
    wire::Outgoing grant = MessageOf(wire::Frame::GRANT);
    grant.frame.set_version(claims_.completed());
    grant.frame.set_sequence(claims_.cursors()[rank]);
    members_.Send(rank, std::move(grant));
  }
  for (const int rank : claims_.TakeDone()) {
    // To a task that waits for a step, LIMIT means that none is left.
    wire::Outgoing limit = MessageOf(wire::Frame::LIMIT);
    limit.frame.set_version(claims_.completed());
    members_.Send(rank, std::move(limit));
  }
}

void Generation::SetLimit(int64_t limit) {
  limit_ = std::min<int64_t>(limit_, limit);
  if (shared_steps()) {
    wire::Outgoing message = MessageOf(wire::Frame::LIMIT);
    message.frame.set_version(limit_);
    members_.SendToAll(message.frame);
    return;
  }
  absl::MutexLock lock(&claims_mutex_);
  claims_.SetLimit(limit);
  SendGrants();
}

wire::Outgoing Generation::MessageOf(wire::Frame::Kind kind) const {
  wire::Outgoing message;
  message.frame.set_kind(kind);
  message.frame.set_generation(spec_.generation);
  return message;
}

// In lockstep no update changes these values before every task has them, so they are sent in place.
// Otherwise they are copied. REQUIRES: the bucket's mutex held.
void Generation::SendValues(int rank, int bucket, int64_t version) {
  wire::Outgoing values = MessageOf(wire::Frame::VALUES);
  values.frame.set_bucket(bucket);
  values.frame.set_version(version);
  if (spec_.shape.is_dense(bucket)) {
    const float* data = shard_.Values(bucket, version);
    const size_t size = spec_.shape.buckets[bucket].elements * sizeof(float);
    if (lockstep()) {
      values.payload.push_back({data, size, shared_from_this()});
    } else {
      std::shared_ptr<void> copy(std::malloc(size), std::free);
      std::memcpy(copy.get(), data, size);
      values.payload.push_back({copy.get(), size, copy});
    }
  }
  members_.Send(rank, std::move(values));
}

// Returns the version to send for `wanted`, or Aborted if it is not kept.
// REQUIRES: the bucket's mutex held.
absl::StatusOr<int64_t> Generation::KeptVersion(int bucket, int64_t wanted) const {
  const int64_t newest = shard_.version(bucket);
  if (!lockstep()) return newest;
  if (wanted == newest || wanted == newest - 1) return wanted;
  return absl::AbortedError(absl::StrCat("version ", wanted, " of bucket ", bucket,
                                         " is not kept: the newest is ", newest));
}

absl::Status Generation::Pull(int rank, const wire::Frame& frame) {
  const auto bucket = static_cast<int>(frame.bucket());
  if (frame.bucket() >= static_cast<uint32_t>(spec_.shape.bucket_count())) {
    return NoBucket(frame.bucket());
  }
  Round& round = rounds_[bucket];
  absl::MutexLock lock(&round.mutex);
  MUSTER_ASSIGN_OR_RETURN(const int64_t version, KeptVersion(bucket, frame.version()));
  if (spec_.shape.is_dense(bucket)) {
    SendValues(rank, bucket, version);
    return absl::OkStatus();
  }
  wire::Outgoing buffers = MessageOf(wire::Frame::VALUES);
  buffers.frame.set_bucket(bucket);
  buffers.frame.set_version(lockstep() ? version : frame.version());
  if (!spec_.shape.is_table(bucket)) {
    auto copy = std::make_shared<std::vector<std::byte>>(shard_.Buffers(version));
    buffers.payload.push_back({copy->data(), copy->size(), copy});
  }
  members_.Send(rank, std::move(buffers));
  return absl::OkStatus();
}

absl::Status Generation::PullRows(int rank, const wire::Frame& frame,
                                  const wire::Payload& payload) {
  const auto bucket = static_cast<int>(frame.bucket());
  const bool is_table = frame.bucket() < static_cast<uint32_t>(spec_.shape.bucket_count()) &&
                        spec_.shape.is_table(bucket);
  if (!is_table) return absl::InvalidArgumentError(absl::StrCat("there is no table ", bucket));
  const int table = bucket - spec_.shape.table_bucket(0);
  const int64_t count = static_cast<int64_t>(payload.size() / sizeof(int64_t));
  if (payload.size() % sizeof(int64_t) != 0 || count > spec_.shape.tables[table].rows) {
    return absl::InvalidArgumentError(absl::StrCat("rows of table ", bucket, " in ", payload.size(),
                                                   " bytes: send each row at most once"));
  }
  std::vector<int64_t> rows(static_cast<size_t>(count));
  payload.Copy(0, payload.size(), rows.data());
  MUSTER_RETURN_IF_ERROR(shard_.CheckRows(table, rows));
  auto values = std::make_shared<std::vector<float>>(rows.size() * spec_.shape.tables[table].width);
  {
    absl::MutexLock lock(&rounds_[bucket].mutex);
    MUSTER_ASSIGN_OR_RETURN(const int64_t version, KeptVersion(bucket, frame.version()));
    shard_.ReadRows(table, version, rows, values->data());
  }
  wire::Outgoing answer = MessageOf(wire::Frame::ROWS);
  answer.frame.set_bucket(bucket);
  answer.payload.push_back({values->data(), values->size() * sizeof(float), values});
  members_.Send(rank, std::move(answer));
  return absl::OkStatus();
}

// Holds claims_mutex_ while the buckets are marked, so that no step completes between the snapshot
// and its cursors. With async strategies parts of steps that are being computed may be included;
// the restored job computes those steps again.
nlohmann::json Generation::BeginSnapshot() {
  absl::MutexLock lock(&claims_mutex_);
  const int64_t shared_step = shared_steps() ? step() : 0;
  shard_.BeginSnapshot();
  ++snapshot_number_;
  if (shared_steps()) {
    return {{"step", shared_step},
            {"cursors", std::vector<int64_t>(spec_.cursors.size(), shared_step)}};
  }
  return {{"step", claims_.completed()}, {"cursors", claims_.cursors()}};
}

std::vector<std::string> Generation::Missing() const {
  std::vector<bool> missing(spec_.cursors.size(), false);
  if (shared_steps()) {
    const int64_t now = step();
    for (int bucket = 0; bucket < spec_.shape.bucket_count(); ++bucket) {
      const Round& round = rounds_[bucket];
      absl::MutexLock lock(&round.mutex);
      // A bucket that no task has pushed yet waits for nobody in particular.
      const bool waits = shard_.version(bucket) == now && round.arrived > 0;
      for (size_t rank = 0; rank < missing.size(); ++rank) {
        if (waits && !round.contributions[rank].present) missing[rank] = true;
      }
    }
  } else {
    absl::MutexLock lock(&claims_mutex_);
    for (const int rank : claims_.WaitsFor()) missing[rank] = true;
  }
  std::vector<std::string> names;
  for (size_t rank = 0; rank < missing.size(); ++rank) {
    const bool connected = members_.IsConnected(static_cast<int>(rank));
    if (!missing[rank] && connected) continue;
    names.push_back(absl::StrCat(members_.task(static_cast<int>(rank)).ToString(),
                                 connected ? "" : " (not connected)"));
  }
  return names;
}

}  // namespace muster::train
