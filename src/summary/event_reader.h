// Reads one event file, written by Muster or TensorFlow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/unique_fd.h"
#include "summary/event.h"

namespace muster::summary {

// Reads a file, also while it is being written: an incomplete record counts as the end for now. Not
// thread-safe.
class EventReader {
 public:
  static absl::StatusOr<EventReader> Open(const std::string& path);

  // Returns the next event, or nullopt at the end; a later call may find more. Returns DataLoss,
  // with the offset, if the file is damaged or not an event file; so do all later calls.
  absl::StatusOr<std::optional<Event>> Next();

 private:
  EventReader(std::string path, base::UniqueFd fd);

  absl::StatusOr<std::optional<Event>> ReadEvent();
  // Returns the data of the record at offset_, or nullopt if it is incomplete.
  absl::StatusOr<std::optional<absl::string_view>> ReadRecord();
  // Returns `size` bytes at `offset`, or nullopt if the file is shorter. Valid until the next call.
  absl::StatusOr<std::optional<absl::string_view>> Bytes(int64_t offset, int64_t size);

  std::string path_;
  base::UniqueFd fd_;
  int64_t offset_ = 0;  // of the next record
  std::string buffer_;  // file content from buffer_offset_ on
  int64_t buffer_offset_ = 0;
  absl::Status status_;
};

}  // namespace muster::summary
