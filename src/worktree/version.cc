#include "worktree/version.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "nlohmann/json.hpp"

namespace muster::worktree {
namespace {

namespace fs = std::filesystem;

constexpr char kListing[] = "files.json";
constexpr char kCopies[] = "files";
constexpr int64_t kMaxListingBytes = 256 << 20;
constexpr int64_t kMaxReadBytes = 4 << 20;

std::string IdOf(const std::vector<const WorkFile*>& files) {
  if (files.empty()) return "";
  base::Sha256 hash;
  for (const WorkFile* file : files) {
    // NUL cannot occur in a path, so no two listings have the same encoding.
    hash.Update(absl::StrCat(file->path, absl::string_view("\0", 1), file->mode, " ",
                             file->is_link() ? file->link_target : file->sha256,
                             absl::string_view("\0", 1)));
  }
  return hash.Finish();
}

bool SameContent(const WorkFile& a, const WorkFile& b) {
  return a.mode == b.mode && a.sha256 == b.sha256 && a.link_target == b.link_target;
}

// Copies `from` to `to`, which must not exist, with the given mode. Shares the blocks on a file
// system that can.
absl::Status CopyFile(const std::string& from, const std::string& to, mode_t mode) {
  const base::UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in.valid()) return base::DiskError(errno, from);
  const base::UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out.valid()) return base::DiskError(errno, to);
  constexpr size_t kChunk = size_t{1} << 30;
  for (;;) {
    const ssize_t n = ::copy_file_range(in.get(), nullptr, out.get(), nullptr, kChunk, 0);
    if (n == 0) break;
    if (n > 0 || errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      return base::DiskError(errno, to);
    }
    // Not supported between these file systems: the positions are unchanged, so reading continues.
    std::array<char, 64 << 10> buffer;
    for (;;) {
      const ssize_t got = ::read(in.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::DiskError(errno, from);
      if (got == 0) break;
      MUSTER_RETURN_IF_ERROR(
          base::WriteAll(out.get(), absl::string_view(buffer.data(), static_cast<size_t>(got))));
    }
    break;
  }
  if (::fchmod(out.get(), mode) != 0) return base::DiskError(errno, to);
  return absl::OkStatus();
}

void SetModified(const std::string& path, int64_t mtime_ns) {
  const timespec times[] = {
      {.tv_sec = 0, .tv_nsec = UTIME_OMIT},
      {.tv_sec = mtime_ns / 1'000'000'000, .tv_nsec = mtime_ns % 1'000'000'000}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

// Also returns true for a dangling link.
bool IsTaken(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// Returns every folder on the way to a file, relative and without '/' at the end.
std::set<std::string> FoldersOf(const std::vector<WorkFile>& files) {
  std::set<std::string> folders;
  for (const WorkFile& file : files) {
    if (!IsProgramFile(file)) continue;
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      folders.insert(file.path.substr(0, slash));
    }
  }
  return folders;
}

// Links the entries of `root`/`within` that the version has no copy of. `within` is "" or ends in
// '/'.
absl::Status LinkOthers(const std::string& root, const std::string& view,
                        const std::set<std::string>& folders, const std::string& within) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(base::JoinPath(root, within), error)) {
    const std::string name = entry.path().filename().string();
    const std::string path = absl::StrCat(within, name);
    const std::string place = base::JoinPath(view, path);
    if (folders.contains(path) && entry.is_directory(error)) {
      MUSTER_RETURN_IF_ERROR(LinkOthers(root, view, folders, absl::StrCat(path, "/")));
      continue;
    }
    // Python would take the compiled code of another version from __pycache__ if both were saved
    // within a second.
    if (name == "__pycache__" || IsTaken(place)) continue;
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0) continue;  // removed meanwhile
    WorkFile file{.path = path};
    TakeStat(info, file);
    if (S_ISREG(info.st_mode) && IsProgramFile(file)) continue;  // added since
    if (::symlink(entry.path().c_str(), place.c_str()) != 0 && errno != EEXIST) {
      return base::DiskError(errno, place);
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::DiskError(error.value(), base::JoinPath(root, within));
  }
  return absl::OkStatus();
}

// Makes `to` a private copy of `source`, which was hashed before.
absl::Status Keep(const std::string& source, const std::string& sha256, const std::string& store,
                  const std::string& to) {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(to)));
  const std::string kept = base::JoinPath(store, sha256);
  if (::link(kept.c_str(), to.c_str()) == 0) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CopyFile(source, to, 0400));
  // The copy is hashed, because the source may have changed since.
  std::vector<WorkFile> copy = {{.path = to.substr(to.rfind('/') + 1)}};
  MUSTER_RETURN_IF_ERROR(HashFiles(base::FolderOf(to), copy, "").status());
  if (copy[0].sha256 != sha256) {
    return absl::AbortedError(absl::StrCat(source, " changed while it was read; try again"));
  }
  // Best effort: without the link, the next version has a copy of its own.
  std::error_code error;
  fs::create_hard_link(to, kept, error);
  return absl::OkStatus();
}

absl::Status SaveInto(const std::string& folder, const std::string& root, const Version& version,
                      const std::string& store) {
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder));
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(store));
  nlohmann::json files = nlohmann::json::array();
  for (const WorkFile& file : version.files) {
    files.push_back({{"path", file.path},
                     {"size", file.size},
                     {"mode", file.mode},
                     {"link", file.link_target},
                     {"sha256", file.sha256},
                     {"mtime_ns", file.mtime_ns},
                     {"ctime_ns", file.ctime_ns},
                     {"inode", file.inode},
                     {"settled", file.settled}});
    if (!IsProgramFile(file)) continue;
    MUSTER_RETURN_IF_ERROR(Keep(base::JoinPath(root, file.path), file.sha256, store,
                                absl::StrCat(folder, "/", kCopies, "/", file.path)));
  }
  // The listing is written last: a version with a listing is complete.
  return base::ReplaceFile(base::JoinPath(folder, kListing),
                           nlohmann::json{{"files", std::move(files)}}.dump());
}

}  // namespace

std::string Version::Id() const {
  std::vector<const WorkFile*> all;
  for (const WorkFile& file : files) all.push_back(&file);
  return IdOf(all);
}

std::string Version::IdBelow(const std::string& root, const std::vector<std::string>& paths) const {
  std::vector<const WorkFile*> below;
  for (const WorkFile& file : files) {
    const std::string full = base::JoinPath(root, file.path);
    if (std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
          return full == path || absl::StartsWith(full, absl::StrCat(path, "/"));
        })) {
      below.push_back(&file);
    }
  }
  return IdOf(below);
}

std::vector<FileChange> Compare(const Version& before, const Version& after) {
  std::vector<FileChange> changes;
  auto old = before.files.begin();
  auto now = after.files.begin();
  while (old != before.files.end() || now != after.files.end()) {
    if (now == after.files.end() || (old != before.files.end() && old->path < now->path)) {
      changes.push_back({FileChange::Kind::kRemoved, (old++)->path});
    } else if (old == before.files.end() || now->path < old->path) {
      changes.push_back({FileChange::Kind::kAdded, (now++)->path});
    } else {
      if (!SameContent(*old, *now)) changes.push_back({FileChange::Kind::kChanged, now->path});
      ++old;
      ++now;
    }
  }
  return changes;
}

std::string VersionStore::FolderOf(const std::string& id) const {
  return base::JoinPath(folder_, id.substr(0, 16));
}

absl::Status VersionStore::Save(const std::string& root, const Version& version,
                                const std::string& store) const {
  const std::string folder = FolderOf(version.Id());
  if (IsTaken(base::JoinPath(folder, kListing))) return absl::OkStatus();
  std::error_code error;
  fs::remove_all(folder, error);  // left by a process that was killed
  const absl::Status saved = SaveInto(folder, root, version, store);
  if (!saved.ok()) {
    fs::remove_all(folder, error);  // on a full disk, the job needs the space
    RemoveUnused(store);
  }
  return saved;
}

absl::StatusOr<Version> VersionStore::Load(const std::string& id) const {
  const std::string path = base::JoinPath(FolderOf(id), kListing);
  MUSTER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxListingBytes));
  const nlohmann::json json = base::ParseJson(text);
  Version version;
  try {
    for (const nlohmann::json& entry : json.at("files")) {
      version.files.push_back({.path = entry.at("path").get<std::string>(),
                               .size = entry.at("size").get<int64_t>(),
                               .mode = entry.at("mode").get<uint32_t>(),
                               .link_target = entry.at("link").get<std::string>(),
                               .mtime_ns = entry.at("mtime_ns").get<int64_t>(),
                               .sha256 = entry.at("sha256").get<std::string>(),
                               .ctime_ns = entry.at("ctime_ns").get<int64_t>(),
                               .inode = entry.at("inode").get<uint64_t>(),
                               .settled = entry.at("settled").get<bool>()});
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat(path, ": ", error.what()));
  }
  if (version.Id() != id) return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return version;
}

absl::StatusOr<std::string> VersionStore::Read(const std::string& id,
                                               const std::string& path) const {
  return base::ReadFile(absl::StrCat(FolderOf(id), "/", kCopies, "/", path), kMaxReadBytes);
}

void VersionStore::KeepOnly(const std::string& id) const {
  std::error_code error;
  const std::string kept = FolderOf(id);
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().string() != kept) fs::remove_all(entry.path(), error);
  }
}

absl::Status VersionStore::MakeView(const std::string& id, const std::string& root,
                                    const std::string& view) const {
  MUSTER_ASSIGN_OR_RETURN(const Version version, Load(id));
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(view));
  for (const WorkFile& file : version.files) {
    const std::string place = base::JoinPath(view, file.path);
    if (!IsProgramFile(file) || IsTaken(place)) continue;
    MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::FolderOf(place)));
    // A copy, not a link to the one in the store: the program may write to its own files.
    const std::string partial = absl::StrCat(place, ".muster-new");
    ::unlink(partial.c_str());
    const absl::Status copied = CopyFile(absl::StrCat(FolderOf(id), "/", kCopies, "/", file.path),
                                         partial, file.mode == 0755 ? 0700 : 0600);
    if (!copied.ok()) {
      ::unlink(partial.c_str());
      return copied;
    }
    SetModified(partial, file.mtime_ns);
    if (::rename(partial.c_str(), place.c_str()) != 0) return base::DiskError(errno, place);
  }
  return LinkOthers(root, view, FoldersOf(version.files), "");
}

std::string FirstChange(const std::string& root, const Version& version) {
  for (const WorkFile& file : version.files) {
    if (file.is_link()) continue;
    struct stat info {};
    if (::lstat(base::JoinPath(root, file.path).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return file.path;
    }
    std::vector<WorkFile> now = {{.path = file.path}};
    TakeStat(info, now[0]);
    if (now[0].mode != file.mode || now[0].size != file.size) return file.path;
    if (file.settled && now[0].mtime_ns == file.mtime_ns && now[0].ctime_ns == file.ctime_ns &&
        now[0].inode == file.inode) {
      continue;
    }
    if (!HashFiles(root, now, "").ok() || now[0].sha256 != file.sha256) return file.path;
  }
  return "";
}

void RemoveUnused(const std::string& store) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(store, error)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) == 0 && info.st_nlink == 1) {
      ::unlink(entry.path().c_str());
    }
  }
}

}  // namespace muster::worktree
