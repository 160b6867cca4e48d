// Writes what TensorBoard shows.
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
#include "base/clock.h"
#include "base/dtype.h"
#include "base/unique_fd.h"

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
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};

// Writes one event file, new with each writer. Thread-safe.
//
// Events are kept in memory until Flush() or until there are many. Nothing here waits for the disk
// or stops training: when the file cannot be written, events are dropped from there on and Flush()
// says so. Bytes of names that are not UTF-8 are replaced.
class EventWriter {
 public:
  // Creates `folder` when it is missing, and in it events.out.tfevents.<seconds>.<host>[.<suffix>].
  static absl::StatusOr<std::unique_ptr<EventWriter>> Open(const std::string& folder,
                                                           absl::string_view suffix,
                                                           const Clock& clock = Clock::Real());
  // Flushes.
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // The format keeps single precision.
  void Scalar(absl::string_view tag, int64_t step, double value);
  // Values that are not finite are not in the histogram: the scalar "<tag>/non_finite" says how
  // many, when there are some.
  void Histogram(absl::string_view tag, int64_t step, absl::Span<const float> values);
  void Graph(absl::Span<const GraphNode> nodes);
  // For a run that goes on from a checkpoint: what earlier files say of `step` and later ones is
  // void and will be written again. After restoring step 500, `step` is 501.
  void Restarted(int64_t step);

  // Hands everything to the operating system. The first failure is returned, now and by every later
  // call.
  absl::Status Flush();

  const std::string& path() const { return path_; }

 private:
  EventWriter(std::string path, UniqueFd fd, const Clock& clock);

  void Write(tensorboard::Event& event);
  void WriteBuffer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const UniqueFd fd_;
  const Clock& clock_;
  absl::Mutex mutex_;
  std::string buffer_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::summary
