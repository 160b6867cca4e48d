// Writes checkpoints on a background thread while training continues.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "nlohmann/json.hpp"
#include "train/core/values.h"
#include "train/run/model_dir.h"

namespace muster::train {

// One checkpoint at a time:
//
//    idle ──Save──> busy ──Commit──> busy, written ──Publish──> idle
//                    └──────────────failure──────────────────────┘
//
// Save() and Wait() must be called by one thread; the other methods are thread-safe.
class Saver {
 public:
  struct Options {
    ModelDir* model_dir = nullptr;
    std::string model_name;
    int keep = 5;
    std::vector<Variable> variables;
    std::vector<ShardPlan> plans;
    std::vector<std::string> slots;
    nlohmann::json state;  // of the trainer, merged with the snapshot's
    std::function<void(const std::string&)> log;
  };
  explicit Saver(Options options);
  // Waits for the checkpoint being written.
  ~Saver();

  // Returns whether a checkpoint is being written.
  bool busy() const;
  // Begins to write a checkpoint; waits for the one before. A failure is logged and training
  // continues: the next may succeed.
  void Save(std::unique_ptr<Snapshot> snapshot, bool final);
  // Waits until the checkpoint is published and returns the result.
  absl::Status Wait();
  // Waits only until the checkpoint is complete on this machine.
  absl::Status AwaitWritten();
  // Sends a checkpoint that is complete on this machine, unless it was sent. The final one must
  // arrive, so sending it is retried while the storage is unavailable.
  absl::Status Publish(const std::string& folder, bool final);
  // Return the step and folder of the newest checkpoint written, or 0 and "".
  int64_t saved_step() const;
  std::string folder() const;

 private:
  void Run(std::unique_ptr<Snapshot> snapshot, bool final);
  absl::StatusOr<std::string> Write(Snapshot& snapshot, bool final);
  bool IsWritten() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return written_ || !busy_; }

  const Options options_;
  mutable absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool written_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t saved_step_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string folder_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace muster::train
