// Gradients to parameter servers, values back: sync, async and bounded.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "train/exchange.h"
#include "train/ps/client.h"
#include "train/ps/coordinator.h"
#include "train/replica.h"

namespace muster::train {

class PsExchange final : public Exchange {
 public:
  struct Options {
    wire::Frame hello;
    std::vector<std::string> addresses;
    bool is_chief = false;
    GenerationSpec spec;  // as PsCoordinator takes it
    wire::Frame::Precision precision = wire::Frame::FLOAT32;
    // Keeps all gradients until backward is over, to clip them by their norm; 0: no clipping.
    double clip_norm = 0;
    absl::Duration start_timeout = absl::Minutes(5);
    absl::Duration peer_timeout = absl::Minutes(30);  // for others, once at work
    int64_t bucket_bytes = 2 << 20;
    std::function<void(const std::string&)> log;
    // Whether the job has ended meanwhile: asked when the servers do not answer. May be empty.
    std::function<bool()> is_over;
  };
  PsExchange(wire::Transport& transport, Replica& replica, Options options);

  absl::StatusOr<Progress> Join(FirstValues first) override;
  absl::StatusOr<bool> Begin(const std::vector<Batch>& batches) override;
  void OnGradient(int parameter) override;
  absl::StatusOr<Progress> Finish(bool skipped) override;
  absl::Status AwaitEnd() override { return client_->AwaitEnd(); }
  absl::StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() override;
  absl::Status EndAt(int64_t step) override;
  absl::Status EndJob() override;
  const std::vector<ShardPlan>& plans() const override { return plans_; }

 private:
  // A bucket and the parts of parameters in it.
  struct Route {
    int server = 0;
    int bucket = 0;
    std::vector<Piece> pieces;
    int waits_for = 0;  // parameters whose gradients are still to come
  };

  absl::Status TryJoin(FirstValues first, absl::Duration timeout);
  void BuildRoutes();
  void Receive(int server, int bucket, const wire::Payload& values);
  void Push(Route& route);
  std::vector<wire::Chunk> PayloadOf(const Route& route);
  void PushTables(bool skipped);
  void PushBuffers();
  void PushRest(bool skipped);
  float ClipScale() const;
  absl::Status PullTables(const std::vector<Batch>& batches);
  absl::Status PullTable(int variable, const std::set<int64_t>& rows);

  wire::Transport& transport_;
  Replica& replica_;
  const Options options_;
  const std::vector<ShardPlan> plans_;
  const bool shared_steps_;
  std::vector<Route> routes_;
  std::vector<std::vector<int>> routes_of_;  // by parameter
  std::vector<int> first_route_;             // by server
  std::unique_ptr<PsClient> client_;
  std::unique_ptr<PsCoordinator> coordinator_;  // of the chief
  Progress progress_;
  float gradient_scale_ = 1;
  bool has_joined_ = false;
  std::shared_ptr<std::vector<std::byte>> sent_buffers_;  // what the servers have of the chief's
};

}  // namespace muster::train
