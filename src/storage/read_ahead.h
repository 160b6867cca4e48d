// A file from front to back, fetched ahead of who reads it, several ranges at once.
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
  int parallel = 4;  // ranges that are under way or wait to be taken; at most 64
};

// Holds at most parallel * range_bytes of the file, and less of a smaller one. Not thread-safe.
//
//   ranges  0 1 2 | 3 4 5 6 | 7 8 …
//           taken   fetched   begin when an earlier one is taken
class ReadAhead {
 public:
  // `reader` must outlive it; `url` is for errors. A file of one range is read by the caller's
  // thread.
  ReadAhead(Reader& reader, Url url, const ReadAheadOptions& options = {});
  // Begins nothing more, and waits for the ranges that are under way.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The next bytes, which stay until the next call; "" at the end, which is where the file ends by
  // then. An error comes where its range would have, and again with every further call. Aborted
  // when the file has become shorter.
  absl::StatusOr<absl::string_view> Next();

 private:
  // Room for a range; that with the number n uses the one at n modulo their count.
  struct Slot {
    std::unique_ptr<char[]> room;
    bool filled = false;
    absl::StatusOr<size_t> bytes = 0;
  };

  void Work();
  // Of what is there, the range with this number.
  size_t BytesOf(int64_t range) const;
  absl::StatusOr<size_t> Fetch(int64_t range, char* room);
  absl::StatusOr<absl::string_view> Take();
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
  int64_t tail_;         // behind what the file had when it was opened
  absl::Status status_;  // of Next()

  absl::Mutex mutex_;
  std::vector<Slot> slots_;  // what is marked in them is guarded; a room belongs to who uses it
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;    // the first range that is not begun
  int64_t end_ ABSL_GUARDED_BY(mutex_) = 0;     // none is begun from here
  int64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // the one that Next() returns next
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;   // those before are no longer in use
  std::vector<std::jthread> threads_;
};

}  // namespace muster::storage
