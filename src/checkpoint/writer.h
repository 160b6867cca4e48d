// Writes one checkpoint, as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/dtype.h"
#include "base/file_lock.h"
#include "checkpoint/hashed_file.h"
#include "checkpoint/shards.h"
#include "nlohmann/json.hpp"

namespace muster::checkpoint {

struct WriteOptions {
  int64_t step = 0;
  std::string model_name;
  bool final = false;  // the job's last
  int64_t max_file_bytes = int64_t{2} << 30;
};

// The specs are known first; then the bytes arrive, the weights' in order, then the slots', in
// pieces of any size. Nothing is visible before Commit has returned OK, and a checkpoint of the
// same step that exists is whole until then. One thread at a time; not the training thread, since
// calls wait for the disk.
//
// After an error every further call returns it, and what was written is gone. ResourceExhausted:
// the disk is full.
class Writer {
 public:
  // FailedPrecondition when another writer, of any process, is at the same step. InvalidArgument
  // for names that are double, not UTF-8 or reserved, and for impossible shapes.
  static absl::StatusOr<std::unique_ptr<Writer>> Begin(const std::string& model_dir,
                                                       const WriteOptions& options,
                                                       const std::vector<TensorSpec>& weights,
                                                       const std::vector<TensorSpec>& slots);
  // Not committed: removes what it wrote.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // InvalidArgument for more bytes than the specs have.
  absl::Status Append(absl::Span<const std::byte> bytes);

  // `state`: an object, of the trainer alone. FailedPrecondition when bytes are missing.
  absl::Status Commit(const nlohmann::json& state);

  // Where the checkpoint is once committed.
  const std::string& folder() const { return folder_; }

 private:
  // A tensor that is still to come.
  struct Expected {
    int64_t bytes = 0;
    int file = 0;  // index into files_
  };

  Writer(const std::string& model_dir, const WriteOptions& options);
  absl::Status Plan(const std::vector<TensorSpec>& weights, const std::vector<TensorSpec>& slots);
  absl::Status Claim();
  absl::Status CreateFiles();
  absl::Status Write(absl::Span<const std::byte> bytes);
  absl::Status Complete(const nlohmann::json& state);
  absl::Status WriteSmallFile(const std::string& name, const std::string& text);
  absl::Status Publish();
  absl::Status Fail(absl::Status status);

  const WriteOptions options_;
  const std::string store_;    // <model_dir>/checkpoints
  const std::string folder_;   // step-000000500 in it
  const std::string partial_;  // its name until it is complete
  std::unique_ptr<FileLock> owner_;
  std::vector<Shard> weight_shards_;
  std::vector<Shard> slot_shards_;
  std::vector<Expected> expected_;
  std::vector<HashedFile> files_;  // of the weights, of the slots, then the small ones
  size_t next_ = 0;                // into expected_
  int64_t received_ = 0;           // of expected_[next_]
  absl::Status failure_;
  bool committed_ = false;
};

}  // namespace muster::checkpoint
