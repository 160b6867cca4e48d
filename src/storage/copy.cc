#include "storage/copy.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "storage/read_ahead.h"

namespace muster::storage {
namespace {

// Over all files: ranges of 8 MiB that are fetched at once.
constexpr int kRanges = 8;
constexpr absl::Duration kLook = absl::Milliseconds(100);

// What the threads of one CopyAll share.
class Copying {
 public:
  Copying(Storage& storage, const std::vector<CopyPair>& pairs, int ranges, bool compare)
      : storage_(storage), pairs_(pairs), ranges_(ranges), compare_(compare) {}

  // Until there is nothing left to do.
  void Work() {
    while (!stop_) {
      const size_t mine = next_++;
      if (mine >= pairs_.size()) break;
      bool skipped = false;
      const absl::Status status = One(pairs_[mine], skipped);
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
  // Gives every byte of a file to `use`.
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
    Md5 hash;
    MUSTER_RETURN_IF_ERROR(Stream(*reader, url, [&](absl::string_view bytes) {
      hash.Update(bytes);
      return absl::OkStatus();
    }));
    return hash.Finish();
  }

  absl::StatusOr<bool> IsThere(const CopyPair& pair, FileSystem& from, FileSystem& to) {
    const auto there = to.Stat(pair.to);
    if (absl::IsNotFound(there.status())) return false;
    MUSTER_RETURN_IF_ERROR(there.status());
    if (there->bytes != pair.from.bytes) return false;
    MUSTER_ASSIGN_OR_RETURN(const std::string first, Md5Of(from, pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(const std::string second, Md5Of(to, pair.to));
    return first == second;
  }

  absl::Status One(const CopyPair& pair, bool& skipped) {
    MUSTER_ASSIGN_OR_RETURN(FileSystem * from, storage_.For(pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(FileSystem * to, storage_.For(pair.to));
    if (compare_) {
      MUSTER_ASSIGN_OR_RETURN(skipped, IsThere(pair, *from, *to));
    }
    if (skipped) {
      bytes_ += pair.from.bytes;
      return absl::OkStatus();
    }
    MUSTER_ASSIGN_OR_RETURN(const FileInfo info, from->Stat(pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(const auto reader, from->OpenForReading(pair.from.url));
    MUSTER_ASSIGN_OR_RETURN(const auto writer, to->OpenForWriting(pair.to, IfExists::kReplace));
    Md5 hash;
    MUSTER_RETURN_IF_ERROR(Stream(*reader, pair.from.url, [&](absl::string_view bytes) {
      if (!info.md5.empty()) hash.Update(bytes);
      bytes_ += static_cast<int64_t>(bytes.size());
      return writer->Append(bytes);
    }));
    if (!info.md5.empty() && hash.Finish() != info.md5) {
      return absl::DataLossError(
          absl::StrCat(pair.from.url.ToString(),
                       ": what came has another MD5 than the storage tells; try again"));
    }
    return writer->Close();
  }

  Storage& storage_;
  const std::vector<CopyPair>& pairs_;
  const int ranges_;  // of one file
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
    for (absl::Duration look = absl::Milliseconds(1); copying.ended() < count;
         look = std::min(2 * look, kLook)) {
      if (options.progress && !options.progress(copying.bytes(), copying.files())) copying.Stop();
      absl::SleepFor(look);
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
