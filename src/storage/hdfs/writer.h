// Writes a file of HDFS atomically.
#pragma once

#include <cstdint>
#include <string>

#include "storage/file_system.h"
#include "storage/hdfs/client.h"

namespace muster::storage {

// Writes chunks to a temporary file in the same folder: the first creates it, the others are
// appended. Close() renames it. After a lost connection the chunk is written again: the first one
// recreates the file; for the others the file is truncated to its earlier length first, since the
// datanode may still be writing an unknown part of the lost chunk.
class HdfsWriter final : public Writer {
 public:
  HdfsWriter(HdfsClient& client, Url url, IfExists if_exists);
  ~HdfsWriter() override;
  HdfsWriter(const HdfsWriter&) = delete;
  HdfsWriter& operator=(const HdfsWriter&) = delete;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Close() override;

 private:
  absl::Status SendChunk();
  absl::Status TryChunk();
  // Truncates the temporary file to the chunks that were sent.
  absl::Status Truncate();
  // Waits until the namenode reports the full length.
  absl::StatusOr<HdfsStatus> AwaitLength();
  absl::Status Commit();
  // Replaces the temporary name in an error message by the target's.
  absl::Status NameTarget(const absl::Status& status) const;
  void Remove();

  HdfsClient& client_;
  const Url url_;
  const Url temporary_;
  const IfExists if_exists_;
  const size_t chunk_bytes_;
  std::string buffer_;
  int64_t sent_ = 0;
  bool created_ = false;  // the temporary file may exist
  absl::Status status_;
};

}  // namespace muster::storage
