// The names and limits of docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::checkpoint {

inline constexpr char kFormatName[] = "muster-checkpoint";
inline constexpr int kFormatVersion = 1;

inline constexpr char kFolder[] = "checkpoints";        // in the model dir
inline constexpr char kTrainerLock[] = ".trainer";      // in the model dir: who trains there
inline constexpr char kStoreLock[] = ".lock";           // in kFolder: who adds or removes one
inline constexpr char kBestFile[] = "best.json";        // in kFolder
inline constexpr char kPartialSuffix[] = ".partial";    // of a folder that is being written
inline constexpr char kReplacedSuffix[] = ".replaced";  // of one that a newer takes the place of
inline constexpr char kWriterLock[] = "writer.lock";    // in that folder: its writer lives
inline constexpr char kSupersededPrefix[] = "superseded-";  // in the model dir

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kStateFile[] = "state.json";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";
inline constexpr char kModelKind[] = "model";
inline constexpr char kOptimizerKind[] = "optimizer";

// What is read whole into memory. A header's limit is that of the reference implementation.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;
inline constexpr int64_t kMaxJsonBytes = 64 << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr int kMaxShards = 99999;

// "step-000000500".
std::string StepFolder(int64_t step);
// That of a model dir of this machine: <model_dir>/checkpoints/step-000000500.
std::string CheckpointPath(const std::string& model_dir, int64_t step);
// Only what StepFolder writes.
std::optional<int64_t> ParseStepFolder(absl::string_view name);

// "model-00001-of-00002.safetensors"; counts from 1.
std::string ShardFile(absl::string_view kind, int number, int count);

struct ShardName {
  std::string kind;
  int number = 0;
  int count = 0;
};
// Only what ShardFile writes, of the two kinds.
std::optional<ShardName> ParseShardFile(absl::string_view name);

// Whether a name in a model dir is what a run leaves beside its checkpoints: evaluations, exports,
// TensorBoard's event files.
bool IsRunOutput(absl::string_view name);

// A name that stays within its folder: no separator, not hidden, not empty.
bool IsPlainFileName(absl::string_view name);

}  // namespace muster::checkpoint
