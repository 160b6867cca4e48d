// For tests: a job of servers and tasks in one process.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/testing.h"
#include "train/core/values.h"
#include "train/ps/client.h"
#include "train/ps/coordinator.h"
#include "train/ps/serial_training.h"
#include "train/ps/server.h"
#include "train/wire/fake_transport.h"
#include "train/wire/grpc_transport.h"

namespace muster::train {

struct JobOptions {
  int tasks = 2;
  int servers = 1;
  bool grpc = false;
  std::vector<Variable> variables = AllKinds();
  Strategy strategy = Strategy::kSync;
  int64_t limit = 5;
  int64_t staleness = 0;
  int backup_tasks = 0;
  wire::Frame::Precision precision = wire::Frame::FLOAT32;
  OptimizerConfig optimizer = {.kind = OptimizerConfig::Kind::kAdam, .learning_rate = 0.01};
  absl::Duration report_interval = absl::Seconds(10);
  absl::Duration peer_timeout = absl::Minutes(1);
  absl::Duration call_timeout = absl::Minutes(1);
};

// The servers of a job and the configuration of its tasks: chief:0, worker:0, worker:1 …
class Job {
 public:
  explicit Job(JobOptions options);
  ~Job();

  const JobOptions& options() const { return options_; }
  const std::vector<ShardPlan>& plans() const { return plans_; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  wire::Transport& transport();
  wire::FakeTransport& fake() { return fake_; }
  ParameterServer& server(int index) { return *servers_[index].server; }
  cluster::TaskId task(int rank) const {
    return rank == 0 ? cluster::TaskId{"chief", 0} : cluster::TaskId{"worker", rank - 1};
  }
  wire::Frame HelloOf(int rank, int attempt, uint64_t incarnation) const;

  void StartServer(int index);
  void StopServer(int index);

  std::unique_ptr<PsCoordinator> NewCoordinator();
  // Initializes the servers.
  absl::Status Start(PsCoordinator& coordinator, int64_t step = 0);
  absl::StatusOr<ModelState> Read(Snapshot& snapshot) const;
  // Returns the state that the servers hold now.
  ModelState Now();

  // The serial computation of the same job, for comparison.
  Serial NewSerial() const;
  ModelState SerialResult(int64_t steps) const;

  void Log(const std::string& line);
  bool Logged(const std::string& part) const;

 private:
  struct Server {
    std::unique_ptr<ParameterServer> server;
    std::unique_ptr<wire::Listener> listener;
  };

  const JobOptions options_;
  base::TempDir folder_;
  wire::GrpcTransport grpc_;
  wire::FakeTransport fake_;
  std::vector<std::string> addresses_;
  std::vector<ShardPlan> plans_;
  std::vector<Server> servers_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> logs_ ABSL_GUARDED_BY(mutex_);
};

// A training task that acts like the trainer, with synthetic gradients.
class Task {
 public:
  Task(Job& job, int rank, int attempt = 0);

  absl::Status Join(absl::Duration timeout = absl::Seconds(30));
  // Returns false if the job is complete.
  absl::StatusOr<bool> Step();
  // Trains to the end, rejoining after failures.
  absl::Status Run();

  // The parts of a step.
  absl::StatusOr<bool> Begin();
  void Push(int server, int bucket);
  absl::Status Finish();
  // Returns the (server, bucket) pairs of a step, in random order.
  std::vector<std::pair<int, int>> Buckets();

  PsClient& client() { return client_; }
  int64_t step() const { return step_; }
  int64_t sequence() const { return sequence_; }
  uint64_t generation() const { return generation_; }
  const std::vector<std::vector<float>>& values() const { return values_; }
  // Delays each push by a random time of at most `delay`.
  void set_delay(absl::Duration delay) { delay_ = delay; }
  void set_skips(std::function<bool(int64_t step)> skips) { skips_ = std::move(skips); }

 private:
  PsClient::Options ClientOptions(int attempt);
  void Receive(int server, int bucket, const wire::Payload& values);
  absl::Status PullTables();
  void PushDense(int server, int bucket, bool skipped);
  void PushTable(int server, int bucket, bool skipped);
  int64_t batch() const { return shared_ ? step_ : sequence_; }

  Job& job_;
  const int rank_;
  const bool shared_;
  std::mt19937 random_;
  absl::Duration delay_;
  std::function<bool(int64_t)> skips_ = [](int64_t) { return false; };
  uint64_t generation_ = 0;
  int64_t step_ = 0;
  int64_t sequence_ = 0;
  std::vector<std::vector<float>> values_;  // from which the gradients are computed
  std::vector<std::vector<float>> next_;    // being received
  PsClient client_;                         // last: its threads use the members above
};

}  // namespace muster::train
