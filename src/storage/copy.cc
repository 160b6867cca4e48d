#include "storage/copy.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "base/status_macros.h"
#include "storage/read_ahead.h"

namespace muster::storage {
namespace {

// Ranges of 8 MiB that are fetched in parallel, over all files.
constexpr int kRanges = 8;
constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);

// The state that the threads of one CopyAll() share.
class Copying {
 public:
  Copying(Storage& storage, const std::vector<CopyPair>& pairs, int ranges, bool compare)
      : storage_(storage), pairs_(pairs), ranges_(ranges), compare_(compare) {}

  // Copies files until none is left or Stop() is called.
  void Work() {
    while (!stop_) {
      const size_t mine = next_++;
      if (mine >= pairs_.size()) break;
      bool skipped = false;
      const absl::Status status = CopyOne(pairs_[mine], skipped);
      absl::MutexLock lock(&mutex_);
      if (absl::IsCancelled(status)) continue;
      if (!status.ok()) {
        result_.failures.push_back(status);
      } else if (skipped) {
        ++result_.skipped;
      } else {
        ++result_.copied;
        result_.copied_bytes += pairs_[mine].from.bytes;
      }
      ++files_;
    }
    ++ended_;
  }

  void Stop() { stop_ = true; }
  int ended() const { return ended_; }
  int64_t bytes() const { return bytes_; }
  int files() const { return files_; }
  CopyResult Take() {
    absl::MutexLock lock(&mutex_);
    result_.stopped = stop_;
    return std::move(result_);
  }

 private:
  // Passes the content of a file to `use`, in order.
  template <typename Use>
  absl::Status Stream(Reader& reader, const Url& url, Use use) {
    ReadAhead ahead(reader, url, {.parallel = ranges_});
    for (;;) {
      if (stop_) return absl::CancelledError("interrupted");
      MUSTER_ASSIGN_OR_RETURN(const absl::string_view bytes, ahead.Next());
      if (bytes.empty()) return absl::OkStatus();
      MUSTER_RETURN_IF_ERROR(use(bytes));
    }
  }

  absl::StatusOr<std::string> Md5Of(FileSystem& files, const Url& url) {
    MUSTER_ASSIGN_OR_RETURN(const FileInfo info, files.Stat(url));
    if (!info.md5.empty()) return info.md5;
    MUSTER_ASSIGN_OR_RETURN(const auto reader, files.OpenForReading(url));
    base::Md5 hash;
    MUSTER_RETURN_IF_ERROR(Stream(*reader, url, [&](absl::string_view bytes) {
      hash.Update(bytes);
      return absl::OkStatus();
    }));
    return hash.Finish();
  }

  absl::StatusOr<bool> IsUpToDate(const CopyPair& pair, FileSystem& from, FileSystem& to) {
    const auto there = to.Stat(pair.to);
    if (absl::IsNotFound(there.status())) return false;
    MUSTER_RETURN_IF_ERROR(there.status());
    if (there->bytes != pair.from.bytes) return false;
    MUSTER_ASSIGN_OR_RETURN(const std::string first, Md5Of(from, pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(const std::string second, Md5Of(to, pair.to));
    return first == second;
  }

  absl::Status CopyOne(const CopyPair& pair, bool& skipped) {
    MUSTER_ASSIGN_OR_RETURN(FileSystem * from, storage_.For(pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(FileSystem * to, storage_.For(pair.to));
    if (compare_) {
      MUSTER_ASSIGN_OR_RETURN(skipped, IsUpToDate(pair, *from, *to));
    }
    if (skipped) {
      bytes_ += pair.from.bytes;
      return absl::OkStatus();
    }
    // Again, since listings do not report the MD5 on every storage.
    MUSTER_ASSIGN_OR_RETURN(const FileInfo info, from->Stat(pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(const auto reader, from->OpenForReading(pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(const auto writer, to->OpenForWriting(pair.to, IfExists::kReplace));
    base::Md5 hash;
    MUSTER_RETURN_IF_ERROR(Stream(*reader, pair.from.url, [&](absl::string_view bytes) {
      if (!info.md5.empty()) hash.Update(bytes);
      bytes_ += static_cast<int64_t>(bytes.size());
      return writer->Append(bytes);
    }));
    if (!info.md5.empty() && hash.Finish() != info.md5) {
      return absl::DataLossError(
          absl::StrCat(pair.from.url.ToString(),
                       ": the downloaded bytes do not match the storage's MD5; try again"));
    }
    // Without Close(), as after the errors above, the writer discards what was written.
    return writer->Close();
  }

  Storage& storage_;
  const std::vector<CopyPair>& pairs_;
  const int ranges_;  // per file
  const bool compare_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<int> ended_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<int> files_ = 0;
  absl::Mutex mutex_;
  CopyResult result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

CopyResult CopyAll(Storage& storage, const std::vector<CopyPair>& pairs,
                   const CopyOptions& options) {
  const int count = std::max(
      1, std::min(options.parallel, static_cast<int>(std::min<size_t>(pairs.size(), 256))));
  Copying copying(storage, pairs, std::max(1, kRanges / count), options.compare);
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads.emplace_back([&copying] { copying.Work(); });
    // Starts with short intervals, so that small copies return without delay.
    for (absl::Duration interval = absl::Milliseconds(1); copying.ended() < count;
         interval = std::min(2 * interval, kProgressInterval)) {
      if (options.progress && !options.progress(copying.bytes(), copying.files())) copying.Stop();
      absl::SleepFor(interval);
    }
  }
  return copying.Take();
}

absl::Status CopyFiles(Storage& storage, const std::vector<CopyPair>& pairs,
                       const CopyOptions& options) {
  const CopyResult result = CopyAll(storage, pairs, options);
  return result.failures.empty() ? absl::OkStatus() : result.failures.front();
}

}  // namespace muster::storage
