// Reads one event file, of Muster or of TensorFlow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "summary/histogram.h"

namespace muster::summary {

// One record. Which of the fields are set depends on what it says; what Muster does not write is
// left out.
struct Event {
  struct Scalar {
    std::string tag;
    float value = 0;
  };
  struct Distribution {
    std::string tag;
    Histogram histogram;
  };

  absl::Time time;
  int64_t step = 0;
  std::string file_version;  // of the first record
  std::string graph_def;     // a serialized GraphDef
  bool restarted = false;    // what was said before of `step` and later ones is void
  std::vector<Scalar> scalars;
  std::vector<Distribution> distributions;
};

// Also of a file that somebody is writing: a record that is not whole yet is the end, for now.
// Not thread-safe.
class EventReader {
 public:
  static absl::StatusOr<EventReader> Open(const std::string& path);

  // The next event; nothing at the end, after which a later call may find more. DataLoss, with the
  // place, for what is no event file or is damaged; then there is no way on, and later calls say
  // the same.
  absl::StatusOr<std::optional<Event>> Next();

 private:
  EventReader(std::string path, UniqueFd fd);

  absl::StatusOr<std::optional<Event>> ReadEvent();
  absl::StatusOr<std::optional<absl::string_view>> ReadRecord();
  // `size` bytes from `offset` on, if the file has them; valid until the next call.
  absl::StatusOr<std::optional<absl::string_view>> Bytes(int64_t offset, int64_t size);

  std::string path_;
  UniqueFd fd_;
  int64_t offset_ = 0;  // of the next record
  std::string buffer_;  // the file from buffer_offset_ on
  int64_t buffer_offset_ = 0;
  absl::Status status_;
};

}  // namespace muster::summary
