// The checkpoints of a model dir. Any number of processes may use it at the same time: those that
// add or remove take a lock, those that read need none.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_lock.h"
#include "checkpoint/manifest.h"
#include "checkpoint/reader.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {

struct Entry {
  int64_t step = 0;
  std::string folder;
  absl::Time written;  // InfinitePast when it is not known
  int64_t bytes = 0;
  bool final = false;
  // Why it cannot be used. Unavailable: partial, that is being written or never finished;
  // DataLoss: damaged; FailedPrecondition: of a newer format.
  absl::Status status;

  void Fill(const Manifest& manifest);
};

// Oldest first, those that cannot be used too. Looks at manifests and sizes, not at hashes.
std::vector<Entry> List(const std::string& model_dir);

// The newest that verifies, or exactly `step`. What had to be passed over is described in *skipped
// (may be null). NotFound when there is none; with `step`, why that one cannot be used.
absl::StatusOr<Checkpoint> Restore(const std::string& model_dir, std::optional<int64_t> step,
                                   std::vector<std::string>* skipped);

// The one that a user asks for: a step, "best" or "latest".
absl::StatusOr<Checkpoint> Find(const std::string& model_dir, const std::string& which);
// The step that such a word names; nullopt for the latest.
absl::StatusOr<std::optional<int64_t>> StepOf(const std::string& model_dir,
                                              const std::string& which);

// Keeps the newest `keep` complete ones and those of the steps in `always` (the best one's, too);
// removes what is older than all of the newest, and what dead writers left. A checkpoint
// that is being written is left alone. `keep` is at least 1.
absl::Status Retain(const std::string& model_dir, int keep, const std::set<int64_t>& always);

// Moves checkpoints newer than `after_step`, and a best.json that names one of them, into
// <model_dir>/superseded-<n>, so that a run resumed from that step never sees them.
// FailedPrecondition when one of them is being written.
absl::Status SetAside(const std::string& model_dir, int64_t after_step);
// The same with all checkpoints and whatever else IsRunOutput, for a run that starts anew. Returns
// the folder; "" when there was nothing to move.
absl::StatusOr<std::string> SetRunAside(const std::string& model_dir);

// Which job saved a checkpoint, from its state; "" when that is not known.
std::string JobOf(const nlohmann::json& state);

// One job at a time trains in a model dir: this is held as long as it does. `who` is what others
// are told. FailedPrecondition, with who it is, when another job trains there.
absl::StatusOr<FileLock> ClaimForTraining(const std::string& model_dir, const std::string& who);

// Which checkpoint the evaluator found best.
struct Best {
  int64_t step = 0;
  std::string metric;
  double value = 0;
};

// NotFound when none was recorded, DataLoss when the record is damaged.
absl::StatusOr<Best> ReadBest(const std::string& model_dir);
absl::StatusOr<Best> BestOf(const nlohmann::json& record);
absl::Status WriteBest(const std::string& model_dir, const Best& best);

}  // namespace muster::checkpoint
