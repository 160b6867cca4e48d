#include "train/ps/generation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "train/half.h"

namespace muster::train {
namespace {

int64_t BytesOf(wire::Frame::Precision precision, int64_t elements) {
  return elements * (precision == wire::Frame::FLOAT32 ? 4 : 2);
}

std::optional<int64_t> StalenessOf(const GenerationSpec& spec) {
  if (spec.strategy == Strategy::kBounded) return spec.staleness;
  return std::nullopt;
}

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 8 == 0; }

}  // namespace

const float* Generation::Contribution::gradients() const {
  if (!converted.empty()) return converted.data();
  return reinterpret_cast<const float*>(payload.data() + rows * sizeof(int64_t));
}

absl::StatusOr<std::shared_ptr<Generation>> Generation::Create(GenerationSpec spec,
                                                               Members& members) {
  MUSTER_ASSIGN_OR_RETURN(
      Schedule schedule,
      Schedule::FromJson(spec.schedule, spec.optimizer.learning_rate, spec.total_steps));
  if (static_cast<int>(spec.cursors.size()) != members.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the chief counts ", spec.cursors.size(),
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
                           .keep_previous = shared_steps()}),
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
  shard_.Activate();
  active_ = true;
}

int64_t Generation::step() const {
  if (!shared_steps() && spec_.counts_steps) {
    absl::MutexLock lock(&claims_mutex_);
    return claims_.completed();
  }
  int64_t step = std::numeric_limits<int64_t>::max();
  for (int bucket = 0; bucket < spec_.shape.bucket_count(); ++bucket) {
    step = std::min(step, shard_.version(bucket));
  }
  return spec_.shape.bucket_count() == 0 ? spec_.step : step;
}

int64_t Generation::CursorOf(int rank) const {
  if (shared_steps()) return step();
  absl::MutexLock lock(&claims_mutex_);
  return claims_.cursors()[rank];
}

// Buffers are the chief's alone.
int Generation::Needed(int bucket) const {
  if (spec_.shape.buffer_bytes > 0 && bucket == spec_.shape.buffer_bucket()) return 1;
  return std::max(1, members_.size() - spec_.backup_tasks);
}

absl::Status Generation::Check(int rank, const wire::Frame& frame, size_t bytes) const {
  const ShardShape& shape = spec_.shape;
  const auto bucket = static_cast<int>(frame.bucket());
  if (frame.bucket() >= static_cast<uint32_t>(shape.bucket_count())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no bucket ", frame.bucket()));
  }
  int64_t expected = shape.buffer_bytes;
  if (shape.is_dense(bucket)) {
    expected = BytesOf(frame.precision(), shape.buckets[bucket].elements);
  } else if (shape.is_table(bucket)) {
    const Table& table = shape.tables[bucket - shape.table_bucket(0)];
    if (frame.count() < 0 || frame.count() > table.rows) {
      return absl::InvalidArgumentError(
          absl::StrCat(frame.count(), " rows of a table of ", table.rows));
    }
    expected = frame.count() * static_cast<int64_t>(sizeof(int64_t)) +
               BytesOf(frame.precision(), frame.count() * table.width);
  } else if (rank != 0 || frame.skipped()) {
    return absl::InvalidArgumentError("the model's buffers are the chief's to set");
  }
  if (frame.skipped()) expected = 0;
  if (expected == static_cast<int64_t>(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("bucket ", bucket, " has ", expected, " bytes, not ", bytes));
}

absl::StatusOr<Generation::Contribution> Generation::Read(int rank, const wire::Frame& frame,
                                                          wire::Payload payload) const {
  MUSTER_RETURN_IF_ERROR(Check(rank, frame, payload.size()));
  Contribution contribution{.here = true, .skipped = frame.skipped()};
  const auto bucket = static_cast<int>(frame.bucket());
  const bool is_buffer = !spec_.shape.is_dense(bucket) && !spec_.shape.is_table(bucket);
  if (!is_buffer && !frame.skipped()) {
    contribution.rows = frame.count();
    if (!IsAligned(payload.data())) {
      std::shared_ptr<std::byte> copy(static_cast<std::byte*>(std::malloc(payload.size())),
                                      std::free);
      std::memcpy(copy.get(), payload.data(), payload.size());
      payload = wire::Payload(copy.get(), payload.size(), copy);
    }
    const std::byte* gradients = payload.data() + contribution.rows * sizeof(int64_t);
    const auto elements = static_cast<int64_t>(
        (payload.size() - contribution.rows * sizeof(int64_t)) / sizeof(uint16_t));
    if (frame.precision() != wire::Frame::FLOAT32) {
      contribution.converted.resize(elements);
      (frame.precision() == wire::Frame::FLOAT16 ? FromFloat16 : FromBfloat16)(
          gradients, contribution.converted.data(), elements);
    }
    if (spec_.shape.is_table(bucket)) {
      MUSTER_RETURN_IF_ERROR(shard_.CheckRows(bucket - spec_.shape.table_bucket(0),
                                              {reinterpret_cast<const int64_t*>(payload.data()),
                                               static_cast<size_t>(contribution.rows)}));
    }
  }
  contribution.payload = std::move(payload);
  return contribution;
}

absl::Status Generation::Push(int rank, const wire::Frame& frame, wire::Payload payload) {
  if (frame.version() >= limit_ && shared_steps()) return absl::OkStatus();  // it was told
  MUSTER_ASSIGN_OR_RETURN(Contribution contribution, Read(rank, frame, std::move(payload)));
  return shared_steps() ? PushShared(rank, frame, std::move(contribution))
                        : PushAlone(rank, frame, std::move(contribution));
}

absl::Status Generation::PushShared(int rank, const wire::Frame& frame, Contribution contribution) {
  const auto bucket = static_cast<int>(frame.bucket());
  Round& round = rounds_[bucket];
  absl::MutexLock lock(&round.mutex);
  const int64_t version = shard_.version(bucket);
  if (frame.version() > version) {
    return absl::InternalError(absl::StrCat("a gradient of version ", frame.version(),
                                            " for a bucket of version ", version));
  }
  if (frame.version() < version) {  // sent again, or too late to count
    SendValues(rank, bucket, version);
    return absl::OkStatus();
  }
  Contribution& place = round.contributions[rank];
  if (place.here) return absl::OkStatus();  // its earlier attempt sent the same
  place = std::move(contribution);
  if (++round.arrived < Needed(bucket)) return absl::OkStatus();
  ApplyShared(bucket, round.contributions);
  round.arrived = 0;
  for (size_t other = 0; other < round.contributions.size(); ++other) {
    if (!round.contributions[other].here) continue;
    round.contributions[other] = {};
    SendValues(static_cast<int>(other), bucket, version + 1);
  }
  return absl::OkStatus();
}

void Generation::ApplyShared(int bucket, std::vector<Contribution>& contributions) {
  std::vector<const Contribution*> counted;
  for (const Contribution& contribution : contributions) {
    if (contribution.here && !contribution.skipped) counted.push_back(&contribution);
  }
  if (spec_.shape.is_table(bucket)) {
    ApplyRows(bucket, counted);
  } else if (spec_.shape.is_dense(bucket)) {
    std::vector<const float*> gradients;
    for (const Contribution* contribution : counted) gradients.push_back(contribution->gradients());
    shard_.Apply(bucket, gradients, 1.0F / static_cast<float>(std::max<size_t>(1, counted.size())));
  } else {
    const wire::Payload& bytes = counted.front()->payload;
    shard_.SetBuffers({bytes.data(), bytes.size()});
  }
}

void Generation::ApplyRows(int bucket, absl::Span<const Contribution* const> contributions) {
  std::vector<RowGradients> gradients;
  for (const Contribution* contribution : contributions) {
    gradients.push_back({{reinterpret_cast<const int64_t*>(contribution->payload.data()),
                          static_cast<size_t>(contribution->rows)},
                         contribution->gradients()});
  }
  shard_.ApplyRows(bucket - spec_.shape.table_bucket(0), gradients,
                   1.0F / static_cast<float>(std::max<size_t>(1, gradients.size())));
}

absl::Status Generation::PushAlone(int rank, const wire::Frame& frame, Contribution contribution) {
  const auto bucket = static_cast<int>(frame.bucket());
  Round& round = rounds_[bucket];
  {
    absl::MutexLock lock(&round.mutex);
    if (frame.sequence() < round.sequences[rank]) {  // sent again
      SendValues(rank, bucket, shard_.version(bucket));
      return absl::OkStatus();
    }
    round.sequences[rank] = frame.sequence() + 1;
    std::vector<Contribution> one;
    one.push_back(std::move(contribution));
    ApplyShared(bucket, one);
    SendValues(rank, bucket, shard_.version(bucket));
  }
  CountAlone(rank);
  return absl::OkStatus();
}

// A task's step is complete when all its buckets are.
void Generation::CountAlone(int rank) {
  if (!spec_.counts_steps) return;
  absl::MutexLock lock(&claims_mutex_);
  const bool has_buffers = spec_.shape.buffer_bytes > 0;
  const int expected = spec_.shape.bucket_count() - (has_buffers && rank != 0 ? 1 : 0);
  if (++buckets_done_[rank] < expected) return;
  buckets_done_[rank] = 0;
  claims_.Complete(rank);
  SendGrants();
}

void Generation::Claim(int rank) {
  absl::MutexLock lock(&claims_mutex_);
  claims_.Ask(rank);
  SendGrants();
}

void Generation::Leave(int rank) {
  absl::MutexLock lock(&claims_mutex_);
  claims_.Leave(rank);
  buckets_done_[rank] = 0;
  SendGrants();
}

void Generation::SendGrants() {
  for (const int rank : claims_.TakeGrants()) {
    wire::Outgoing grant;
    grant.frame.set_kind(wire::Frame::GRANT);
    grant.frame.set_version(claims_.completed());
    grant.frame.set_sequence(claims_.cursors()[rank]);
    members_.Send(rank, std::move(grant));
  }
  for (const int rank : claims_.TakeDone()) {
    wire::Outgoing limit;
    limit.frame.set_kind(wire::Frame::LIMIT);
    limit.frame.set_version(claims_.completed());
    members_.Send(rank, std::move(limit));
  }
}

void Generation::SetLimit(int64_t limit) {
  limit_ = std::min<int64_t>(limit_, limit);
  wire::Frame frame;
  frame.set_kind(wire::Frame::LIMIT);
  frame.set_version(limit_);
  if (shared_steps()) {
    members_.SendToAll(frame);
    return;
  }
  absl::MutexLock lock(&claims_mutex_);
  claims_.SetLimit(limit);
  SendGrants();
}

// With shared steps nothing changes these values while they are sent; otherwise they are copied.
void Generation::SendValues(int rank, int bucket, int64_t version) {
  wire::Outgoing values;
  values.frame.set_kind(wire::Frame::VALUES);
  values.frame.set_generation(spec_.generation);
  values.frame.set_bucket(bucket);
  values.frame.set_version(version);
  if (spec_.shape.is_dense(bucket)) {
    const float* data = shard_.Values(bucket, version);
    const size_t size = spec_.shape.buckets[bucket].elements * sizeof(float);
    if (shared_steps() && spec_.backup_tasks == 0) {
      values.payload.push_back({data, size, shared_from_this()});
    } else {
      std::shared_ptr<void> copy(std::malloc(size), std::free);
      std::memcpy(copy.get(), data, size);
      values.payload.push_back({copy.get(), size, copy});
    }
  }
  members_.Send(rank, std::move(values));
}

absl::Status Generation::Pull(int rank, const wire::Frame& frame) {
  const auto bucket = static_cast<int>(frame.bucket());
  if (frame.bucket() >= static_cast<uint32_t>(spec_.shape.bucket_count())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no bucket ", frame.bucket()));
  }
  Round& round = rounds_[bucket];
  absl::MutexLock lock(&round.mutex);
  const int64_t newest = shard_.version(bucket);
  const int64_t version = shared_steps() ? frame.version() : newest;
  if (version > newest || version < newest - 1) {
    return absl::AbortedError(absl::StrCat("version ", version, " of bucket ", bucket,
                                           " is not kept: the newest is ", newest));
  }
  if (spec_.shape.is_dense(bucket)) {
    SendValues(rank, bucket, version);
    return absl::OkStatus();
  }
  wire::Outgoing buffers;
  buffers.frame.set_kind(wire::Frame::VALUES);
  buffers.frame.set_generation(spec_.generation);
  buffers.frame.set_bucket(bucket);
  buffers.frame.set_version(version);
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
  std::vector<int64_t> rows(payload.count<int64_t>());
  if (!rows.empty()) std::memcpy(rows.data(), payload.data(), rows.size() * sizeof(int64_t));
  MUSTER_RETURN_IF_ERROR(shard_.CheckRows(table, rows));
  auto values = std::make_shared<std::vector<float>>(rows.size() * spec_.shape.tables[table].width);
  shard_.ReadRows(table, frame.version(), rows, values->data());
  wire::Outgoing answer;
  answer.frame.set_kind(wire::Frame::ROWS);
  answer.frame.set_generation(spec_.generation);
  answer.frame.set_bucket(bucket);
  answer.payload.push_back({values->data(), values->size() * sizeof(float), values});
  members_.Send(rank, std::move(answer));
  return absl::OkStatus();
}

nlohmann::json Generation::BeginSnapshot() {
  shard_.BeginSnapshot();
  absl::MutexLock lock(&claims_mutex_);
  if (shared_steps()) {
    std::vector<int64_t> cursors(spec_.cursors.size(), step());
    return {{"step", step()}, {"cursors", cursors}};
  }
  return {{"step", claims_.completed()}, {"cursors", claims_.cursors()}};
}

nlohmann::json Generation::Missing() const {
  std::vector<bool> missing(spec_.cursors.size(), false);
  if (shared_steps()) {
    const int64_t now = step();
    for (int bucket = 0; bucket < spec_.shape.bucket_count(); ++bucket) {
      const Round& round = rounds_[bucket];
      absl::MutexLock lock(&round.mutex);
      const bool waits = shard_.version(bucket) == now && round.arrived > 0;
      for (size_t rank = 0; rank < missing.size(); ++rank) {
        if (waits && !round.contributions[rank].here) missing[rank] = true;
      }
    }
  } else {
    absl::MutexLock lock(&claims_mutex_);
    for (const int rank : claims_.WaitsFor(-1)) missing[rank] = true;
  }
  nlohmann::json list = nlohmann::json::array();
  for (size_t rank = 0; rank < missing.size(); ++rank) {
    const bool connected = members_.IsConnected(static_cast<int>(rank));
    if (!missing[rank] && connected) continue;
    list.push_back(
        {{"task", members_.task(static_cast<int>(rank)).ToString()}, {"connected", connected}});
  }
  return list;
}

}  // namespace muster::train
