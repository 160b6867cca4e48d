// Reads a file sequentially, prefetching several ranges in parallel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/file_system.h"

namespace muster::storage {

struct ReadAheadOptions {
  size_t range_bytes = 8 << 20;
  int parallel = 4;  // ranges in flight or waiting to be taken; at most 64
};

// Buffers at most parallel * range_bytes, less for a smaller file. Not thread-safe.
//
//   ranges  0 1 2 | 3 4 5 6   | 7 8 …
//           taken   in flight   start when an earlier one is taken
class ReadAhead {
 public:
  // `url` is for error messages. A file of one range is read on the caller's thread.
  // REQUIRES: `reader` outlives this object.
  ReadAhead(Reader& reader, Url url, const ReadAheadOptions& options = {});
  // Waits for the ranges in flight.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Returns the next bytes, valid until the next call; "" at the end of the file, including bytes
  // appended since it was opened. Returns an error in place of its range, and again from every
  // further call. Returns Aborted if the file was truncated.
  absl::StatusOr<absl::string_view> Next();

 private:
  // The buffer of a range; range n uses slot n modulo the number of slots.
  struct Slot {
    std::unique_ptr<char[]> buffer;
    bool filled = false;
    absl::StatusOr<size_t> bytes = 0;
  };

  void Work();
  // Returns the size of a range; the last one may be short.
  size_t BytesOf(int64_t range) const;
  absl::StatusOr<size_t> Fetch(int64_t range, char* buffer);
  // Returns the next prefetched range.
  absl::StatusOr<absl::string_view> Take();
  // Returns bytes beyond the size that the file had when it was opened.
  absl::StatusOr<absl::string_view> Tail();

  bool MayWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return next_ >= end_ || next_ < taken_ + static_cast<int64_t>(slots_.size());
  }
  bool IsFilled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return slots_[static_cast<size_t>(wanted_) % slots_.size()].filled;
  }

  Reader& reader_;
  const Url url_;
  const int64_t size_;
  const size_t range_bytes_;
  const int64_t ranges_;
  int64_t tail_;         // offset of the next Tail()
  absl::Status status_;  // of Next()

  absl::Mutex mutex_;
  // `filled` and `bytes` are guarded by mutex_. A buffer belongs to the fetching thread until
  // `filled`, then to the caller of Next().
  std::vector<Slot> slots_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;    // the first range not started
  int64_t end_ ABSL_GUARDED_BY(mutex_) = 0;     // no range from here on is started
  int64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // the range that Next() returns next
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;   // buffers of earlier ranges are free
  std::vector<std::jthread> threads_;
};

}  // namespace muster::storage
