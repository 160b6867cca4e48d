// Writes an object: a small one in one request, a large one in parts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "storage/file_system.h"

namespace muster::storage {

// Buffers appended bytes and sends each part when it is full. Subclasses call Abort() in their
// destructor.
class PartWriter : public Writer {
 public:
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  absl::Status Append(absl::string_view bytes) final;
  absl::Status Close() final;

 protected:
  PartWriter(Url url, int64_t part_bytes)
      : url_(std::move(url)), part_bytes_(static_cast<size_t>(part_bytes)) {}

  const Url& url() const { return url_; }
  void DoublePartBytes() { part_bytes_ *= 2; }

  // Sends a full part that is not the last.
  virtual absl::Status SendPart(absl::string_view part) = 0;
  // Sends the last part, which is not empty, and completes the file.
  virtual absl::Status SendLast(absl::string_view part) = 0;
  // Sends a file that fits into one part.
  virtual absl::Status SendWhole(absl::string_view content) = 0;
  // Discards the sent parts unless the file is complete.
  virtual void Abort() = 0;

 private:
  const Url url_;
  size_t part_bytes_;
  std::string buffer_;
  bool in_parts_ = false;
  absl::Status status_;
};

}  // namespace muster::storage
