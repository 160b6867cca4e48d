// Files in this process's memory, for tests: memory://name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "storage/file_system.h"

namespace muster::storage {

// A fake storage. Returns ResourceExhausted when its files exceed `capacity` bytes.
// REQUIRES: outlives the readers and writers that it returns.
class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(int64_t capacity = int64_t{1} << 40,
                            const base::Clock& clock = base::Clock::Real())
      : capacity_(capacity), clock_(clock) {}

  absl::StatusOr<std::unique_ptr<Reader>> OpenForReading(const Url& url) override;
  absl::StatusOr<std::unique_ptr<Writer>> OpenForWriting(const Url& url,
                                                         IfExists if_exists) override;
  absl::StatusOr<FileInfo> Stat(const Url& url) override;
  absl::StatusOr<std::vector<FileInfo>> List(const Url& prefix, Depth depth) override;
  absl::Status Delete(const Url& url) override;
  absl::Status Rename(const Url& from, const Url& to) override;

 private:
  friend class MemoryWriter;
  struct File {
    std::shared_ptr<const std::string> content;
    absl::Time modified;
    std::string md5;
  };

  absl::Status Put(const Url& url, std::string content, IfExists if_exists);
  static FileInfo InfoOf(const Url& url, const File& file);

  const int64_t capacity_;
  const base::Clock& clock_;
  absl::Mutex mutex_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::storage
