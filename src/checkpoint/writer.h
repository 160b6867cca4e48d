// Writes one checkpoint as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/bytes/dtype.h"
#include "base/files/file_lock.h"
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

// Takes the specs first, then the bytes of the weights and of the slots, in order and in pieces of
// any size. The checkpoint becomes visible atomically when Commit() returns OK; an existing one of
// the same step stays intact until then. Not thread-safe. Calls block on the disk, so do not use it
// from the training thread.
//
// After an error all written files are removed and every further call returns that error.
// ResourceExhausted means that the disk is full.
class Writer {
 public:
  // Returns FailedPrecondition if another writer, in any process, writes the same step;
  // InvalidArgument for names that are duplicate, not UTF-8 or reserved, and for impossible shapes.
  static absl::StatusOr<std::unique_ptr<Writer>> Begin(const std::string& model_dir,
                                                       const WriteOptions& options,
                                                       const std::vector<base::TensorSpec>& weights,
                                                       const std::vector<base::TensorSpec>& slots);
  // Removes the written files unless Commit() succeeded.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Returns InvalidArgument for more bytes than the specs have.
  absl::Status Append(absl::Span<const std::byte> bytes);

  // Stores `state`, an object that only the trainer interprets, and publishes the checkpoint.
  // Returns FailedPrecondition if bytes are missing.
  absl::Status Commit(const nlohmann::json& state);

  // Returns the path of the checkpoint after Commit().
  const std::string& folder() const { return folder_; }

 private:
  // A tensor whose bytes Append() expects.
  struct Expected {
    int64_t bytes = 0;
    int file = 0;  // index into files_
  };

  Writer(const std::string& model_dir, const WriteOptions& options);
  absl::Status Plan(const std::vector<base::TensorSpec>& weights,
                    const std::vector<base::TensorSpec>& slots);
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
  const std::string partial_;  // the folder until it is complete
  std::unique_ptr<base::FileLock> owner_;
  std::vector<Shard> weight_shards_;
  std::vector<Shard> slot_shards_;
  std::vector<Expected> expected_;
  std::vector<HashedFile> files_;  // weights, slots, then the small files
  size_t next_ = 0;                // index into expected_
  int64_t received_ = 0;           // bytes of expected_[next_]
  absl::Status failure_;
  bool committed_ = false;
};

}  // namespace muster::checkpoint
