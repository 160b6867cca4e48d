#include "storage/read_ahead.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace muster::storage {

namespace {

constexpr size_t kMinBufferBytes = 64 << 10;
constexpr int64_t kMaxThreads = 64;

// Limits the buffer of a small file to the file's size.
size_t RangeBytes(size_t wanted, int64_t size) {
  const auto whole = static_cast<size_t>(std::max<int64_t>(size, kMinBufferBytes));
  return std::min(std::max<size_t>(wanted, 1), whole);
}

}  // namespace

ReadAhead::ReadAhead(Reader& reader, Url url, const ReadAheadOptions& options)
    : reader_(reader),
      url_(std::move(url)),
      size_(reader.size()),
      range_bytes_(RangeBytes(options.range_bytes, size_)),
      ranges_(size_ / static_cast<int64_t>(range_bytes_) +
              (size_ % static_cast<int64_t>(range_bytes_) == 0 ? 0 : 1)),
      tail_(size_),
      slots_(static_cast<size_t>(
          std::clamp<int64_t>(options.parallel, 1, std::clamp<int64_t>(ranges_, 1, kMaxThreads)))),
      end_(ranges_) {
  if (slots_.size() == 1) return;
  for (size_t i = 0; i < slots_.size(); ++i) threads_.emplace_back([this] { Work(); });
}

ReadAhead::~ReadAhead() {
  {
    absl::MutexLock lock(&mutex_);
    // Makes MayWork() true in every waiting thread, which then returns.
    end_ = 0;
  }
  threads_.clear();  // joins
}

size_t ReadAhead::BytesOf(int64_t range) const {
  const int64_t begin = range * static_cast<int64_t>(range_bytes_);
  return static_cast<size_t>(std::min(static_cast<int64_t>(range_bytes_), size_ - begin));
}

absl::StatusOr<size_t> ReadAhead::Fetch(int64_t range, char* buffer) {
  const size_t bytes = BytesOf(range);
  MUSTER_ASSIGN_OR_RETURN(const size_t n, reader_.Read(range * static_cast<int64_t>(range_bytes_),
                                                       absl::MakeSpan(buffer, bytes)));
  if (n < bytes) {
    return absl::AbortedError(
        absl::StrCat(url_.ToString(), ": was truncated while it was being read; start again"));
  }
  return n;
}

void ReadAhead::Work() {
  for (;;) {
    int64_t range = 0;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ReadAhead::MayWork));
      if (next_ >= end_) return;
      range = next_++;
    }
    // Without the mutex: MayWork() has granted the slot to this thread until `filled` is set.
    Slot& slot = slots_[static_cast<size_t>(range) % slots_.size()];
    if (slot.buffer == nullptr) slot.buffer = std::make_unique_for_overwrite<char[]>(range_bytes_);
    absl::StatusOr<size_t> bytes = Fetch(range, slot.buffer.get());
    absl::MutexLock lock(&mutex_);
    // After an error no later range is started: Next() returns the error first.
    if (!bytes.ok()) end_ = std::min(end_, range + 1);
    slot.bytes = std::move(bytes);
    slot.filled = true;
  }
}

absl::StatusOr<absl::string_view> ReadAhead::Take() {
  absl::MutexLock lock(&mutex_);
  // The caller has finished with the range before, so its slot may be filled again.
  taken_ = wanted_;
  Slot& slot = slots_[static_cast<size_t>(wanted_) % slots_.size()];
  if (threads_.empty()) {
    if (slot.buffer == nullptr) slot.buffer = std::make_unique_for_overwrite<char[]>(range_bytes_);
    slot.bytes = Fetch(wanted_, slot.buffer.get());
  } else {
    mutex_.Await(absl::Condition(this, &ReadAhead::IsFilled));
    slot.filled = false;
  }
  ++wanted_;
  MUSTER_RETURN_IF_ERROR(slot.bytes.status());
  return absl::string_view(slot.buffer.get(), *slot.bytes);
}

// A local file may have grown since, or report size 0 (/proc).
absl::StatusOr<absl::string_view> ReadAhead::Tail() {
  Slot& slot = slots_[0];
  if (slot.buffer == nullptr) slot.buffer = std::make_unique_for_overwrite<char[]>(range_bytes_);
  MUSTER_ASSIGN_OR_RETURN(const size_t n,
                          reader_.Read(tail_, absl::MakeSpan(slot.buffer.get(), range_bytes_)));
  tail_ += static_cast<int64_t>(n);
  return absl::string_view(slot.buffer.get(), n);
}

absl::StatusOr<absl::string_view> ReadAhead::Next() {
  MUSTER_RETURN_IF_ERROR(status_);
  bool tail = false;
  {
    absl::MutexLock lock(&mutex_);
    tail = wanted_ >= ranges_;
  }
  const auto bytes = tail ? Tail() : Take();
  status_ = bytes.status();
  return bytes;
}

}  // namespace muster::storage
