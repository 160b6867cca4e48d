// Writes checkpoints in a thread of its own, while training goes on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "nlohmann/json.hpp"
#include "train/model_dir.h"
#include "train/values.h"

namespace muster::train {

class Saver {
 public:
  struct Options {
    ModelDir* model_dir = nullptr;
    std::string model_name;
    int keep = 5;
    std::vector<Variable> variables;
    std::vector<ShardPlan> plans;
    std::vector<std::string> slots;
    nlohmann::json state;  // of the trainer, beside what the snapshot has
    std::function<void(const std::string&)> log;
  };
  explicit Saver(Options options);
  // Waits for what is being written.
  ~Saver();

  // True while a checkpoint is being written; another must wait.
  bool busy() const;
  // Begins to write. A failure is logged: training goes on, the next may succeed.
  void Save(std::unique_ptr<Snapshot> snapshot, bool final);
  // Waits until it is written and published; how that went.
  absl::Status Wait();
  // Waits only until it is whole on this machine.
  absl::Status AwaitWritten();
  // Sends a checkpoint that is whole on this machine, unless it is there already. The last one must
  // arrive: a storage that is away is waited for.
  absl::Status Publish(const std::string& folder, bool final);
  // The newest that was written, or 0; and where.
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
