// Exchange over parameter servers: sync, async and bounded.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "train/ps/client.h"
#include "train/ps/coordinator.h"
#include "train/torch/exchange/exchange.h"
#include "train/torch/exchange/replica.h"

namespace muster::train {

class PsExchange final : public Exchange {
 public:
  struct Options {
    wire::Frame hello;
    std::vector<std::string> addresses;
    bool is_chief = false;
    GenerationSpec spec;  // as in PsCoordinator::Options
    wire::Frame::Precision precision = wire::Frame::FLOAT32;
    // Maximum norm of the gradients; they are sent only after backward then. 0: no clipping.
    double clip_norm = 0;
    absl::Duration start_timeout = absl::Minutes(5);
    absl::Duration peer_timeout = absl::Minutes(30);  // waiting for others after Join
    int64_t bucket_bytes = 2 << 20;
    std::function<void(const std::string&)> log;
    // Returns whether the job has ended meanwhile. Called when servers do not answer; may be empty.
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
  // A bucket and its pieces of parameters.
  struct Route {
    int server = 0;
    int bucket = 0;
    std::vector<Piece> pieces;
    int waits_for = 0;  // parameters without a complete gradient yet; -1: pushed
  };

  absl::Status TryJoin(FirstValues first, absl::Duration timeout);
  void BuildRoutes();
  void Receive(int server, int bucket, const wire::Payload& values);
  void Push(Route& route);
  std::vector<wire::Chunk> GradientsOf(const Route& route);
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
  std::shared_ptr<std::vector<std::byte>> sent_buffers_;  // the buffers last pushed by the chief
};

}  // namespace muster::train
