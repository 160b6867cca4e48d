// Writes an object: a small one at once, a large one in parts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "storage/file_system.h"

namespace muster::storage {

// Collects what is appended and hands it on in parts as they become full. Who implements this calls
// Abort() in his destructor.
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

  // A full part, behind which more will come.
  virtual absl::Status SendPart(absl::string_view part) = 0;
  // The last part, which is not empty, and the end of the file.
  virtual absl::Status SendLast(absl::string_view part) = 0;
  // All of a file that is no larger than a part.
  virtual absl::Status SendWhole(absl::string_view content) = 0;
  // Removes what was sent, if that was not the end of it.
  virtual void Abort() = 0;

 private:
  const Url url_;
  size_t part_bytes_;
  std::string buffer_;
  bool in_parts_ = false;
  absl::Status status_;
};

}  // namespace muster::storage
