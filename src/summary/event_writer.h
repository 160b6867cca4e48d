// Writes TensorBoard event files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/bytes/dtype.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"

namespace muster::tensorboard {
class Event;
}

namespace muster::summary {

// One operation or variable of a model. TensorBoard groups names at each '/', draws an edge from
// each of `inputs` (names of other nodes) and colours by device.
struct GraphNode {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;
  std::string device;  // "/job:ps/task:0"; "" = none
  std::optional<base::DType> dtype;
  std::optional<base::Shape> shape;
};

// Writes one new event file. Thread-safe.
//
// Buffers events in memory until Flush() or until the buffer is full. Never syncs and never stops
// training: after a failed write, further events are dropped and Flush() returns the error.
// Replaces invalid UTF-8 in names.
class EventWriter {
 public:
  // Creates `folder` if missing, and in it events.out.tfevents.<seconds>.<host>[.<suffix>]. `clock`
  // must outlive the writer.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Open(
      const std::string& folder, absl::string_view suffix,
      const base::Clock& clock = base::Clock::Real());
  // Flushes.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // The format stores single precision.
  void Scalar(absl::string_view tag, int64_t step, double value);
  // Infinities and NaN are left out of the histogram and counted in the scalar "<tag>/non_finite",
  // which is written only if there are any.
  void Histogram(absl::string_view tag, int64_t step, absl::Span<const float> values);
  void Graph(absl::Span<const GraphNode> nodes);
  // Marks records of `step` and later steps in earlier files as void, because a run that resumed
  // from a checkpoint writes them again. After restoring step 500, `step` is 501.
  void Restarted(int64_t step);

  // Writes all buffered events to the operating system. Returns the first failure, in every later
  // call too.
  absl::Status Flush();

  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, base::UniqueFd fd, const base::Clock& clock);

  void Write(tensorboard::Event& event);
  void WriteBuffer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const base::UniqueFd fd_;
  const base::Clock& clock_;
  absl::Mutex mutex_;
  std::string buffer_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::summary
