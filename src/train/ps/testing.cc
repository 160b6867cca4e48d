#include "train/ps/testing.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"

namespace muster::train {
namespace {

using Kind = Variable::Kind;
using wire::Frame;

constexpr int64_t kBucketBytes = 16 << 10;
constexpr char kCluster[] = R"({"chief": ["a"], "worker": ["b"], "ps": ["c"]})";

uint64_t NextIncarnation() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

std::vector<ShardShape> ShapesOf(const std::vector<ShardPlan>& plans) {
  std::vector<ShardShape> shapes;
  shapes.reserve(plans.size());
  for (const ShardPlan& plan : plans) shapes.push_back(plan.shape);
  return shapes;
}

absl::Span<const std::byte> BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
}

// Provides a state as the first values.
class StateSource final : public ValueSource {
 public:
  StateSource(ModelState state, int64_t step) : state_(std::move(state)), step_(step) {}
  Progress progress() const override {
    Progress progress;
    progress.step = step_;
    return progress;
  }
  std::vector<int64_t> cursors() const override { return {}; }
  absl::Span<const std::byte> Values(int variable) const override {
    if (!state_.buffers[variable].empty()) return state_.buffers[variable];
    return BytesOf(state_.values[variable]);
  }
  absl::Span<const std::byte> Slot(int variable, int slot) const override {
    return BytesOf(state_.slots[slot][variable]);
  }

 private:
  const ModelState state_;
  const int64_t step_;
};

}  // namespace

Job::Job(JobOptions options)
    : options_(std::move(options)),
      plans_(Place(options_.variables, options_.servers, kBucketBytes)),
      servers_(static_cast<size_t>(options_.servers)) {
  for (int i = 0; i < options_.servers; ++i) {
    addresses_.push_back(options_.grpc ? absl::StrCat("unix:", folder_.path(), "/ps", i)
                                       : absl::StrCat("fake-", i));
    StartServer(i);
  }
}

Job::~Job() {
  for (int i = 0; i < options_.servers; ++i) StopServer(i);
}

wire::Transport& Job::transport() {
  if (options_.grpc) return grpc_;
  return fake_;
}

void Job::StartServer(int index) {
  std::vector<cluster::TaskId> tasks;
  tasks.reserve(static_cast<size_t>(options_.tasks));
  for (int rank = 0; rank < options_.tasks; ++rank) tasks.push_back(task(rank));
  Server& server = servers_[index];
  server.server = std::make_unique<ParameterServer>(
      ParameterServer::Options{.self = {"ps", index},
                               .training_tasks = tasks,
                               .cluster = kCluster,
                               .log = [this](const std::string& line) { Log(line); },
                               .report_interval = options_.report_interval});
  auto listener = transport().Listen(
      addresses_[index],
      [served = server.server.get()](wire::Connection& connection, const wire::Caller& caller) {
        served->Serve(connection, caller);
      });
  EXPECT_TRUE(listener.ok()) << listener.status();
  if (listener.ok()) server.listener = *std::move(listener);
}

void Job::StopServer(int index) {
  servers_[index].listener.reset();
  servers_[index].server.reset();
}

Frame Job::HelloOf(int rank, int attempt, uint64_t incarnation) const {
  Frame hello;
  hello.set_cluster(base::Sha256Hex(kCluster));
  hello.mutable_peer()->set_role(task(rank).role);
  hello.mutable_peer()->set_index(static_cast<uint32_t>(task(rank).index));
  hello.mutable_peer()->set_attempt(static_cast<uint32_t>(attempt));
  hello.mutable_peer()->set_incarnation(incarnation);
  hello.mutable_peer()->set_process(absl::StrCat("process ", incarnation));
  return hello;
}

std::unique_ptr<PsCoordinator> Job::NewCoordinator() {
  GenerationSpec spec;
  spec.strategy = options_.strategy;
  spec.limit = options_.limit;
  spec.total_steps = options_.limit;
  spec.backup_tasks = options_.backup_tasks;
  spec.staleness = options_.staleness;
  spec.cursors.assign(static_cast<size_t>(options_.tasks), 0);
  spec.optimizer = options_.optimizer;
  return std::make_unique<PsCoordinator>(
      transport(), PsCoordinator::Options{.hello = HelloOf(0, 0, NextIncarnation()),
                                          .addresses = addresses_,
                                          .variables = options_.variables,
                                          .plans = plans_,
                                          .spec = spec,
                                          .report_interval = options_.report_interval,
                                          .call_timeout = options_.call_timeout,
                                          .log = [this](const std::string& line) { Log(line); }});
}

absl::Status Job::Start(PsCoordinator& coordinator, int64_t step) {
  return coordinator.EnsureActive(
      [&]() -> absl::StatusOr<std::unique_ptr<ValueSource>> {
        return std::make_unique<StateSource>(NewSerial().state, step);
      },
      absl::Seconds(30));
}

absl::StatusOr<ModelState> Job::Read(Snapshot& snapshot) const {
  const int slots = static_cast<int>(SlotNames(options_.optimizer).size());
  ModelState state;
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    const Kind kind = options_.variables[v].kind;
    const bool is_buffer = kind == Kind::kBuffer;
    std::vector<float> floats[3];
    for (int slot = -1; slot < (is_buffer ? 0 : slots); ++slot) {
      std::vector<std::byte> bytes;
      for (const Extent& extent : ExtentsOf(plans_, static_cast<int>(v))) {
        MUSTER_RETURN_IF_ERROR(
            snapshot.Read(extent, AreaOf(kind, slot), [&](absl::Span<const std::byte> piece) {
              bytes.insert(bytes.end(), piece.begin(), piece.end());
              return absl::OkStatus();
            }));
      }
      if (is_buffer) {
        state.buffers.push_back(std::move(bytes));
        break;
      }
      floats[slot + 1].resize(bytes.size() / sizeof(float));
      if (!bytes.empty()) std::memcpy(floats[slot + 1].data(), bytes.data(), bytes.size());
    }
    if (!is_buffer) state.buffers.emplace_back();
    state.values.push_back(std::move(floats[0]));
    for (int slot = 0; slot < 2; ++slot) state.slots[slot].push_back(std::move(floats[slot + 1]));
  }
  return state;
}

ModelState Job::Now() {
  auto coordinator = NewCoordinator();
  const absl::Status active = coordinator->EnsureActive(
      []() -> absl::StatusOr<std::unique_ptr<ValueSource>> {
        return absl::InternalError("the servers have no values");
      },
      absl::Seconds(30));
  EXPECT_TRUE(active.ok()) << active;
  auto snapshot = coordinator->TakeSnapshot();
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  auto state = Read(**snapshot);
  EXPECT_TRUE(state.ok()) << state.status();
  return *std::move(state);
}

Serial Job::NewSerial() const {
  const int slots = static_cast<int>(SlotNames(options_.optimizer).size());
  return {options_.variables, options_.optimizer, options_.precision,
          FirstState(options_.variables, slots)};
}

ModelState Job::SerialResult(int64_t steps) const {
  std::set<int> all;
  for (int rank = 0; rank < options_.tasks; ++rank) all.insert(rank);
  Serial serial = NewSerial();
  for (int64_t step = 0; step < steps; ++step) serial.Step(step, all);
  return serial.state;
}

void Job::Log(const std::string& line) {
  absl::MutexLock lock(&mutex_);
  logs_.push_back(line);
}

bool Job::Logged(const std::string& part) const {
  absl::MutexLock lock(&mutex_);
  return std::any_of(logs_.begin(), logs_.end(),
                     [&](const std::string& line) { return absl::StrContains(line, part); });
}

Task::Task(Job& job, int rank, int attempt)
    : job_(job),
      rank_(rank),
      shared_(job.options().strategy == Strategy::kSync),
      random_(static_cast<uint32_t>(std::random_device{}())),
      client_(job.transport(), ClientOptions(attempt)) {
  for (const Variable& variable : job.options().variables) {
    const bool is_buffer = variable.kind == Kind::kBuffer;
    values_.emplace_back(is_buffer ? 0 : base::ElementsOf(variable.spec.shape));
  }
  next_ = values_;
}

PsClient::Options Task::ClientOptions(int attempt) {
  return {.hello = job_.HelloOf(rank_, attempt, NextIncarnation()),
          .addresses = job_.addresses(),
          .shapes = ShapesOf(job_.plans()),
          .shared_steps = shared_,
          .owns_buffers = rank_ == 0,
          .report_interval = job_.options().report_interval,
          .peer_timeout = job_.options().peer_timeout,
          .log = [this](const std::string& line) { job_.Log(line); },
          .receive = [this](int server, int bucket,
                            const wire::Payload& values) { Receive(server, bucket, values); }};
}

void Task::Receive(int server, int bucket, const wire::Payload& values) {
  if (!job_.plans()[server].shape.is_dense(bucket)) return;
  size_t offset = 0;
  for (const Piece& piece : job_.plans()[server].PiecesOf(bucket)) {
    const size_t bytes = static_cast<size_t>(piece.elements) * sizeof(float);
    values.Copy(offset, bytes, next_[piece.variable].data() + piece.first);
    offset += bytes;
  }
  EXPECT_EQ(offset, values.size());
}

absl::Status Task::Join(absl::Duration timeout) {
  MUSTER_ASSIGN_OR_RETURN(const Position position, client_.Join(timeout));
  MUSTER_RETURN_IF_ERROR(client_.PullAll(position.step));
  values_ = next_;
  generation_ = position.generation;
  step_ = shared_ ? client_.reached() : position.step;
  sequence_ = position.sequence;
  return absl::OkStatus();
}

absl::Status Task::PullTables() {
  for (size_t server = 0; server < job_.plans().size(); ++server) {
    const ShardShape& shape = job_.plans()[server].shape;
    for (size_t t = 0; t < shape.tables.size(); ++t) {
      const Table& table = shape.tables[t];
      const int64_t count = job_.options().variables[table.variable].spec.shape[0];
      std::vector<int64_t> local;
      for (const int64_t row : RowsOf(rank_, batch(), count)) {
        const int64_t here = row - table.first_row;
        if (here >= 0 && here < table.rows) local.push_back(here);
      }
      MUSTER_ASSIGN_OR_RETURN(
          const wire::Payload rows,
          client_.PullRows(static_cast<int>(server), shape.table_bucket(static_cast<int>(t)), step_,
                           local));
      const size_t width = static_cast<size_t>(table.width) * sizeof(float);
      EXPECT_EQ(rows.size(), local.size() * width);
      for (size_t i = 0; i < local.size(); ++i) {
        rows.Copy(i * width, width,
                  values_[table.variable].data() + (table.first_row + local[i]) * table.width);
      }
    }
  }
  return absl::OkStatus();
}

std::vector<std::pair<int, int>> Task::Buckets() {
  std::vector<std::pair<int, int>> all;
  for (size_t server = 0; server < job_.plans().size(); ++server) {
    const ShardShape& shape = job_.plans()[server].shape;
    const bool no_buffers = shape.buffer_bytes > 0 && rank_ != 0;
    for (int bucket = 0; bucket < shape.bucket_count() - (no_buffers ? 1 : 0); ++bucket) {
      all.emplace_back(static_cast<int>(server), bucket);
    }
  }
  std::shuffle(all.begin(), all.end(), random_);
  return all;
}

absl::StatusOr<bool> Task::Begin() {
  if (shared_) {
    if (step_ >= client_.limit()) return false;
  } else {
    MUSTER_ASSIGN_OR_RETURN(const bool granted, client_.Claim());
    step_ = client_.granted_step();
    if (!granted) return false;
  }
  MUSTER_RETURN_IF_ERROR(PullTables());
  client_.Begin(step_, sequence_);
  return true;
}

void Task::PushDense(int server, int bucket, bool skipped) {
  if (skipped) return client_.Push(server, bucket, EncodeSkipped());
  auto gradients = std::make_shared<std::vector<float>>();
  for (const Piece& piece : job_.plans()[server].PiecesOf(bucket)) {
    for (int64_t i = piece.first; i < piece.first + piece.elements; ++i) {
      gradients->push_back(GradientOf(rank_, batch(), i, values_[piece.variable][i]));
    }
  }
  client_.Push(server, bucket,
               EncodeDense(job_.options().precision,
                           {{gradients->data(), gradients->size() * sizeof(float), gradients}}));
}

void Task::PushTable(int server, int bucket, bool skipped) {
  if (skipped) return client_.Push(server, bucket, EncodeSkipped());
  const ShardShape& shape = job_.plans()[server].shape;
  const Table& table = shape.tables[bucket - shape.table_bucket(0)];
  const int64_t count = job_.options().variables[table.variable].spec.shape[0];
  std::vector<int64_t> rows;
  std::vector<float> gradients;
  for (const int64_t row : RowsOf(rank_, batch(), count)) {
    if (row < table.first_row || row >= table.first_row + table.rows) continue;
    rows.push_back(row);
    for (int64_t i = row * table.width; i < (row + 1) * table.width; ++i) {
      gradients.push_back(GradientOf(rank_, batch(), i, values_[table.variable][i]));
    }
  }
  client_.Push(
      server, bucket,
      EncodeRows(job_.options().precision, rows, table.first_row, gradients.data(), table.width));
}

void Task::Push(int server, int bucket) {
  const ShardShape& shape = job_.plans()[server].shape;
  const bool skipped = skips_(step_);
  if (shape.is_dense(bucket)) return PushDense(server, bucket, skipped);
  if (shape.is_table(bucket)) return PushTable(server, bucket, skipped);
  client_.Push(server, bucket,
               EncodeBuffers(std::make_shared<std::vector<std::byte>>(
                   BuffersOf(batch(), shape.buffer_bytes))));
}

absl::Status Task::Finish() {
  MUSTER_RETURN_IF_ERROR(client_.Wait());
  values_ = next_;
  if (shared_) step_ = client_.reached();
  sequence_ = shared_ ? step_ : sequence_ + 1;
  return absl::OkStatus();
}

absl::StatusOr<bool> Task::Step() {
  MUSTER_ASSIGN_OR_RETURN(const bool more, Begin());
  if (!more) return false;
  for (const auto& [server, bucket] : Buckets()) {
    if (delay_ > absl::ZeroDuration()) {
      absl::SleepFor(delay_ * std::uniform_real_distribution<double>()(random_));
    }
    Push(server, bucket);
  }
  const absl::Status status = Finish();
  if (absl::IsCancelled(status)) {
    step_ = client_.limit();
    return false;
  }
  MUSTER_RETURN_IF_ERROR(status);
  return true;
}

absl::Status Task::Run() {
  absl::Status status = Join();
  for (;;) {
    if (absl::IsUnavailable(status) || absl::IsAborted(status)) {
      status = Join();
      continue;
    }
    MUSTER_RETURN_IF_ERROR(status);
    const auto more = Step();
    if (more.ok() && !*more) return absl::OkStatus();
    status = more.status();
  }
}

}  // namespace muster::train
