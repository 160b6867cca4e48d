#include "storage/file/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "storage/file/writer.h"
#include "storage/file_errors.h"
#include "storage/temporary_name.h"

namespace muster::storage {
namespace {

class LocalReader final : public Reader {
 public:
  LocalReader(Url url, base::UniqueFd fd, int64_t size)
      : url_(std::move(url)), fd_(std::move(fd)), size_(size) {}

  int64_t size() const override { return size_; }

  absl::StatusOr<size_t> Read(int64_t offset, absl::Span<char> buffer) override {
    if (offset < 0) return NegativeOffset();
    size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t n = ::pread(fd_.get(), buffer.data() + done, buffer.size() - done,
                                offset + static_cast<int64_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::DiskError(errno, url_.ToString());
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

 private:
  const Url url_;
  const base::UniqueFd fd_;
  const int64_t size_;
};

FileInfo InfoOf(const Url& url, const struct stat& info) {
  return {.url = url, .bytes = info.st_size, .modified = absl::TimeFromTimespec(info.st_mtim)};
}

// Collects the entries below a folder.
class Walk {
 public:
  Walk(const Url& prefix, Depth depth) : prefix_(prefix), depth_(depth) {}

  // `written` is the prefix of the resulting names; "" for the working directory.
  absl::Status Folder(const std::string& written) {
    const std::string path = written.empty() ? "." : written;
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) {
      if (errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
      return base::DiskError(errno, path);
    }
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder);
      if (entry == nullptr) break;
      const absl::string_view name = entry->d_name;
      if (name == "." || name == ".." || absl::StartsWith(name, kTemporaryPrefix)) continue;
      names.push_back(absl::StrCat(written, name));
    }
    const int error = errno;
    ::closedir(folder);
    if (error != 0) return base::DiskError(error, path);
    for (const std::string& name : names) MUSTER_RETURN_IF_ERROR(Entry(name));
    return absl::OkStatus();
  }

  std::vector<FileInfo> Take() {
    std::sort(found_.begin(), found_.end(),
              [](const FileInfo& a, const FileInfo& b) { return a.url.name < b.url.name; });
    return std::move(found_);
  }

 private:
  absl::Status Entry(const std::string& name) {
    if (!absl::StartsWith(name, prefix_.name)) return absl::OkStatus();
    struct stat info {};
    if (::stat(name.c_str(), &info) != 0) {
      // Removed since, a dangling link, or a link loop.
      if (errno == ENOENT || errno == ELOOP) return absl::OkStatus();
      return base::DiskError(errno, name);
    }
    if (S_ISREG(info.st_mode)) {
      found_.push_back(InfoOf(prefix_.WithName(name), info));
    } else if (S_ISDIR(info.st_mode) && depth_ == Depth::kHere) {
      found_.push_back({.url = prefix_.WithName(absl::StrCat(name, "/")),
                        .modified = absl::TimeFromTimespec(info.st_mtim)});
    } else if (S_ISDIR(info.st_mode)) {
      return Descend(name, {info.st_dev, info.st_ino});
    }
    return absl::OkStatus();
  }

  // Skips a link that leads back to an enclosing folder.
  absl::Status Descend(const std::string& name, std::pair<dev_t, ino_t> id) {
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return absl::OkStatus();
    above_.push_back(id);
    const absl::Status status = Folder(absl::StrCat(name, "/"));
    above_.pop_back();
    return status;
  }

  const Url prefix_;
  const Depth depth_;
  std::vector<std::pair<dev_t, ino_t>> above_;
  std::vector<FileInfo> found_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> LocalFileSystem::OpenForReading(const Url& url) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  base::UniqueFd fd(::open(url.name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR)) return Absent(url);
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return base::DiskError(errno, url.ToString());
  if (S_ISDIR(info.st_mode)) return NotAFileName(url);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(url.ToString(), ": is not a file"));
  }
  return std::make_unique<LocalReader>(url, std::move(fd), info.st_size);
}

absl::StatusOr<std::unique_ptr<Writer>> LocalFileSystem::OpenForWriting(const Url& url,
                                                                        IfExists if_exists) {
  if (url.NamesFolder()) return NotAFileName(url);
  return LocalWriter::Create(url, if_exists);
}

absl::StatusOr<FileInfo> LocalFileSystem::Stat(const Url& url) {
  struct stat info {};
  if (::stat(url.name.c_str(), &info) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? Absent(url)
                                               : base::DiskError(errno, url.ToString());
  }
  if (!S_ISREG(info.st_mode)) return Absent(url);
  return InfoOf(url, info);
}

absl::StatusOr<std::vector<FileInfo>> LocalFileSystem::List(const Url& prefix, Depth depth) {
  Walk walk(prefix, depth);
  const size_t slash = prefix.name.rfind('/');
  MUSTER_RETURN_IF_ERROR(
      walk.Folder(slash == std::string::npos ? "" : prefix.name.substr(0, slash + 1)));
  return walk.Take();
}

absl::Status LocalFileSystem::Delete(const Url& url) {
  const bool folder = url.NamesFolder();
  if ((folder ? ::rmdir : ::unlink)(url.name.c_str()) == 0) return absl::OkStatus();
  if (errno == ENOENT || errno == ENOTDIR) return absl::OkStatus();
  if (folder && (errno == ENOTEMPTY || errno == EEXIST)) return NotEmpty(url);
  if (errno == EISDIR) return NotAFileName(url);
  return base::DiskError(errno, url.ToString());
}

absl::Status LocalFileSystem::Rename(const Url& from, const Url& to) {
  MUSTER_RETURN_IF_ERROR(Stat(from).status());
  if (to.NamesFolder()) return NotAFileName(to);
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(to.name), 0777));
  if (::rename(from.name.c_str(), to.name.c_str()) != 0) {
    if (errno == EXDEV) {
      return absl::UnimplementedError(absl::StrCat(to.ToString(), ": is on another disk than ",
                                                   from.ToString(),
                                                   "; copy it and delete the original"));
    }
    return errno == EISDIR ? NotAFileName(to) : base::DiskError(errno, to.ToString());
  }
  MUSTER_RETURN_IF_ERROR(base::SyncFolder(base::FolderOf(to.name)));
  return base::SyncFolder(base::FolderOf(from.name));
}

}  // namespace muster::storage
