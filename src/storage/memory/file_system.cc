#include "storage/memory/file_system.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "storage/file_errors.h"

namespace muster::storage {
namespace {

class MemoryReader final : public Reader {
 public:
  explicit MemoryReader(std::shared_ptr<const std::string> content)
      : content_(std::move(content)) {}

  int64_t size() const override { return static_cast<int64_t>(content_->size()); }

  absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) override {
    if (offset < 0) return NegativeOffset();
    if (offset >= size()) return 0;
    return content_->copy(buffer.data(), buffer.size(), static_cast<size_t>(offset));
  }

 private:
  const std::shared_ptr<const std::string> content_;
};

}  // namespace

class MemoryWriter final : public Writer {
 public:
  MemoryWriter(MemoryFileSystem& files, Url url, IfExists if_exists)
      : files_(files), url_(std::move(url)), if_exists_(if_exists) {}

  absl::Status Append(absl::string_view bytes) override {
    if (!status_.ok()) return status_;
    content_.append(bytes.data(), bytes.size());
    if (static_cast<int64_t>(content_.size()) > files_.capacity_) {
      status_ = absl::ResourceExhaustedError(absl::StrCat(url_.ToString(), ": is too large"));
    }
    return status_;
  }

  absl::Status Close() override {
    if (!status_.ok()) return status_;
    const absl::Status status = files_.Put(url_, std::move(content_), if_exists_);
    status_ = status.ok() ? AlreadyClosed(url_) : status;
    return status;
  }

 private:
  MemoryFileSystem& files_;
  const Url url_;
  const IfExists if_exists_;
  std::string content_;
  absl::Status status_;
};

FileInfo MemoryFileSystem::InfoOf(const Url& url, const File& file) {
  return {url, static_cast<int64_t>(file.content->size()), file.modified, file.md5};
}

absl::Status MemoryFileSystem::Put(const Url& url, std::string content, IfExists if_exists) {
  absl::MutexLock lock(&mutex_);
  if (if_exists == IfExists::kFail && files_.contains(url.name)) return Exists(url);
  int64_t bytes = static_cast<int64_t>(content.size());
  for (const auto& [name, file] : files_) {
    if (name != url.name) bytes += static_cast<int64_t>(file.content->size());
  }
  if (bytes > capacity_) {
    return absl::ResourceExhaustedError(absl::StrCat(url.ToString(), ": no space left"));
  }
  const std::string md5 = base::Md5Hex(content);
  files_[url.name] = {std::make_shared<const std::string>(std::move(content)), clock_.Now(), md5};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Reader>> MemoryFileSystem::OpenForReading(const Url& url) {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(url.name);
  if (found == files_.end()) return Absent(url);
  return std::make_unique<MemoryReader>(found->second.content);
}

absl::StatusOr<std::unique_ptr<Writer>> MemoryFileSystem::OpenForWriting(const Url& url,
                                                                         IfExists if_exists) {
  if (url.NamesFolder()) return NotAFileName(url);
  absl::MutexLock lock(&mutex_);
  if (if_exists == IfExists::kFail && files_.contains(url.name)) return Exists(url);
  return std::make_unique<MemoryWriter>(*this, url, if_exists);
}

absl::StatusOr<FileInfo> MemoryFileSystem::Stat(const Url& url) {
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(url.name);
  if (found == files_.end()) return Absent(url);
  return InfoOf(url, found->second);
}

absl::StatusOr<std::vector<FileInfo>> MemoryFileSystem::List(const Url& prefix, Depth depth) {
  absl::MutexLock lock(&mutex_);
  std::vector<FileInfo> found;
  for (auto at = files_.lower_bound(prefix.name);
       at != files_.end() && absl::StartsWith(at->first, prefix.name); ++at) {
    const size_t slash = at->first.find('/', prefix.name.size());
    if (depth == Depth::kAll || slash == std::string::npos) {
      found.push_back(InfoOf(prefix.WithName(at->first), at->second));
      continue;
    }
    const Url folder = prefix.WithName(at->first.substr(0, slash + 1));
    if (found.empty() || found.back().url != folder) found.push_back({folder});
  }
  return found;
}

absl::Status MemoryFileSystem::Delete(const Url& url) {
  absl::MutexLock lock(&mutex_);
  files_.erase(url.name);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Rename(const Url& from, const Url& to) {
  if (to.NamesFolder()) return NotAFileName(to);
  absl::MutexLock lock(&mutex_);
  const auto found = files_.find(from.name);
  if (found == files_.end()) return Absent(from);
  const File file = found->second;
  files_.erase(found);
  files_[to.name] = file;
  return absl::OkStatus();
}

}  // namespace muster::storage
