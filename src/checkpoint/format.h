// The names and limits of docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::checkpoint {

inline constexpr char kFormatName[] = "muster-checkpoint";
inline constexpr int kFormatVersion = 1;

inline constexpr char kFolder[] = "checkpoints";    // in the model dir
inline constexpr char kTrainerLock[] = ".trainer";  // in the model dir; held while training
inline constexpr char kStoreLock[] = ".lock";       // in kFolder; held to add or remove
inline constexpr absl::Duration kStoreLockTimeout = absl::Seconds(60);
inline constexpr char kBestFile[] = "best.json";        // in kFolder
inline constexpr char kPartialSuffix[] = ".partial";    // of a folder being written
inline constexpr char kReplacedSuffix[] = ".replaced";  // of a folder being replaced
inline constexpr char kWriterLock[] = "writer.lock";    // in a partial folder; held by its writer
inline constexpr char kSupersededPrefix[] = "superseded-";  // in the model dir

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kStateFile[] = "state.json";
inline constexpr char kIndexFile[] = "model.safetensors.index.json";
inline constexpr char kModelKind[] = "model";
inline constexpr char kOptimizerKind[] = "optimizer";

// Limits of what is read into memory. kMaxHeaderBytes is that of the reference implementation.
inline constexpr int64_t kMaxHeaderBytes = 100'000'000;
inline constexpr int64_t kMaxJsonBytes = 64 << 20;
inline constexpr int kMaxJsonDepth = 64;
inline constexpr int kMaxShards = 99999;

// Returns "step-000000500".
std::string StepFolder(int64_t step);
// Returns <model_dir>/checkpoints/step-000000500.
std::string CheckpointPath(const std::string& model_dir, int64_t step);
// Accepts only the output of StepFolder().
std::optional<int64_t> ParseStepFolder(absl::string_view name);

// Returns "model-00001-of-00002.safetensors"; `number` counts from 1.
std::string ShardFile(absl::string_view kind, int number, int count);

struct ShardName {
  std::string kind;
  int number = 0;
  int count = 0;
};
// Accepts only the output of ShardFile() for the two kinds.
std::optional<ShardName> ParseShardFile(absl::string_view name);

// Returns whether a name in a model dir is output of a run other than checkpoints: evaluations,
// exports, TensorBoard's event files.
bool IsRunOutput(absl::string_view name);

// Returns whether a name stays within its folder: no separator, not hidden, not empty.
bool IsPlainFileName(absl::string_view name);

}  // namespace muster::checkpoint
