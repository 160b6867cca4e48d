// Writes a file of HDFS that appears whole.
#pragma once

#include <cstdint>
#include <string>

#include "storage/file_system.h"
#include "storage/hdfs/client.h"

namespace muster::storage {

// Chunks go to a temporary name in the same folder, the first creates it and the others are
// appended; Close() renames it. A chunk whose connection is lost is written again: the first
// creates the file anew, and before another one the file is cut back to what it had. (How much of a
// lost chunk has arrived cannot be relied on: the datanode may still be writing.)
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
  absl::Status CutBack();
  // Waits until the namenode knows of all that was sent.
  absl::StatusOr<HdfsStatus> Settle();
  absl::Status Commit();
  // An error with the name that the user knows.
  absl::Status AboutTarget(const absl::Status& status) const;
  void Remove();

  HdfsClient& client_;
  const Url url_;
  const Url temporary_;
  const IfExists if_exists_;
  const size_t chunk_bytes_;
  std::string buffer_;
  int64_t sent_ = 0;
  bool created_ = false;  // the temporary file may be there
  absl::Status status_;
};

}  // namespace muster::storage
