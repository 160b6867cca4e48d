// The checkpoints of a model dir on this machine. Any number of processes may use it at the same
// time: writers and removers take a lock, readers need none.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/file_lock.h"
#include "checkpoint/manifest.h"
#include "checkpoint/reader.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {

struct Entry {
  int64_t step = 0;
  std::string folder;
  absl::Time written;  // InfinitePast if unknown
  int64_t bytes = 0;
  bool final = false;
  // OK if the checkpoint is usable. Unavailable: partial (being written, or its writer died).
  // DataLoss: damaged. FailedPrecondition: written in a newer format.
  absl::Status status;

  void Fill(const Manifest& manifest);
};

// Returns all checkpoints, oldest first, including unusable ones. Checks manifests and file sizes,
// not checksums.
std::vector<Entry> List(const std::string& model_dir);

// Returns the newest checkpoint that verifies, or exactly `step`. Appends to *skipped (may be null)
// one line per newer checkpoint that could not be used. Returns NotFound if there is none, or, with
// `step`, the reason why that one cannot be used.
absl::StatusOr<Checkpoint> Restore(const std::string& model_dir, std::optional<int64_t> step,
                                   std::vector<std::string>* skipped);

// Returns the checkpoint that `which` selects: a step, "best" or "latest".
absl::StatusOr<Checkpoint> Find(const std::string& model_dir, const std::string& which);
// Returns the step that `which` selects; nullopt for "latest".
absl::StatusOr<std::optional<int64_t>> StepOf(const std::string& model_dir,
                                              const std::string& which);

// Deletes checkpoints by the rule of retention.h, and the folders of writers that died. Leaves a
// checkpoint that is being written alone. Callers put the best step into `always`.
// REQUIRES: `keep` >= 1.
absl::Status Retain(const std::string& model_dir, int keep, const std::set<int64_t>& always);

// Moves checkpoints newer than `after_step`, and a best.json that names one of them, into
// <model_dir>/superseded-<n>, so that a run resumed from that step never reads them.
// Returns FailedPrecondition if one of them is being written.
absl::Status SetAside(const std::string& model_dir, int64_t after_step);
// Does the same with all checkpoints and everything for which IsRunOutput() holds, for a run that
// starts from scratch. Returns the folder, or "" if there was nothing to move.
absl::StatusOr<std::string> SetRunAside(const std::string& model_dir);

// Returns the id of the job that saved a checkpoint, from the checkpoint's state; "" if unknown.
std::string JobOf(const nlohmann::json& state);

// Locks the model dir for one training job, until the returned lock is destroyed. Stores `who` in
// the lock file, for the message that others get. Returns FailedPrecondition, naming the holder,
// if another job trains there.
absl::StatusOr<base::FileLock> ClaimForTraining(const std::string& model_dir,
                                                const std::string& who);

// The best checkpoint so far, as recorded by the evaluator.
struct Best {
  int64_t step = 0;
  std::string metric;
  double value = 0;
};

// Returns NotFound if none was recorded, DataLoss if the record is damaged.
absl::StatusOr<Best> ReadBest(const std::string& model_dir);
// Parses the content of best.json.
absl::StatusOr<Best> BestOf(const nlohmann::json& record);
// Returns InvalidArgument if the value is not finite.
absl::Status WriteBest(const std::string& model_dir, const Best& best);

}  // namespace muster::checkpoint
