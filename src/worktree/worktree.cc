#include "worktree/worktree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "base/utf8.h"
#include "worktree/credentials.h"
#include "worktree/gitignore.h"

namespace muster {
namespace {

constexpr int64_t kMaxGitIgnoreBytes = 16 << 20;
constexpr size_t kNamedInErrors = 5;
constexpr size_t kNamedInNotices = 20;

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity> IdentityOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return Identity(info.st_dev, info.st_ino);
}

bool Exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// A .gitignore that is a symbolic link is not followed, as in git.
absl::StatusOr<GitIgnore> ReadGitIgnore(const std::string& folder) {
  const std::string path = JoinPath(folder, ".gitignore");
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ELOOP) return GitIgnore();
    return absl::ErrnoToStatus(errno, path);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return GitIgnore();
  auto text = ReadAll(fd.get(), kMaxGitIgnoreBytes);
  if (!text.ok()) return Annotate(text.status(), path);
  return GitIgnore::Parse(*text);
}

struct FolderCloser {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  const std::unique_ptr<DIR, FolderCloser> stream(::opendir(folder.c_str()));
  if (stream == nullptr) return absl::ErrnoToStatus(errno, folder);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return absl::ErrnoToStatus(errno, folder);
  return names;
}

// Returns a list such as "a, b and 3 more".
std::string Named(const std::vector<std::string>& names, size_t most = kNamedInErrors) {
  const size_t shown = std::min(names.size(), most);
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ");
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

// Returns the largest entries, largest first. Descends into a folder that contains over 90% of the
// total.
std::vector<std::string> LargestEntries(const std::vector<WorkFile>& files, bool by_count) {
  std::string within;
  for (;;) {
    std::map<std::string, int64_t> sizes;
    int64_t total = 0;
    for (const WorkFile& file : files) {
      if (!absl::StartsWith(file.path, within)) continue;
      const size_t slash = file.path.find('/', within.size());
      const int64_t size = by_count ? 1 : file.size;
      sizes[file.path.substr(0, slash == std::string::npos ? slash : slash + 1)] += size;
      total += size;
    }
    std::vector<std::pair<int64_t, std::string>> ordered;
    ordered.reserve(sizes.size());
    for (const auto& [name, size] : sizes) ordered.emplace_back(-size, name);
    std::sort(ordered.begin(), ordered.end());
    if (!ordered.empty() && absl::EndsWith(ordered[0].second, "/") &&
        -ordered[0].first > total / 10 * 9) {
      within = ordered[0].second;
      continue;
    }
    std::vector<std::string> result;
    for (const auto& [size, name] : ordered) {
      if (result.size() == 3 || size == 0) break;
      result.push_back(absl::StrCat(Printable(name), " (",
                                    by_count ? Plural(-size, "file") : FormatBytes(-size), ")"));
    }
    return result;
  }
}

class Walk {
 public:
  Walk(std::string root, const Withheld& withheld, const WorkDirLimits& limits)
      : root_(std::move(root)), withheld_(withheld), limits_(limits) {
    if (!withheld.home.empty()) home_ = IdentityOf(withheld.home);
    for (const std::string& key : withheld.keys) {
      if (const auto identity = IdentityOf(key)) keys_.insert(*identity);
    }
  }

  absl::StatusOr<std::vector<WorkFile>> Run() {
    std::error_code error;
    const std::string canonical = std::filesystem::canonical(root_, error).string();
    if (error) return absl::ErrnoToStatus(error.value(), root_);
    if (!std::filesystem::is_directory(canonical, error)) {
      return absl::InvalidArgumentError(absl::StrCat(root_, " is not a folder"));
    }
    root_ = canonical;
    MUSTER_RETURN_IF_ERROR(ReadRulesAbove());
    MUSTER_RETURN_IF_ERROR(Folder(""));
    MUSTER_RETURN_IF_ERROR(Refused());
    NoticeCredentials();
    std::sort(files_.begin(), files_.end(),
              [](const WorkFile& a, const WorkFile& b) { return a.path < b.path; });
    int64_t total = 0;
    for (const WorkFile& file : files_) total += file.size;
    if (total > limits_.max_bytes) {
      return TooLarge(FormatBytes(total), FormatBytes(limits_.max_bytes), /*by_count=*/false);
    }
    return std::move(files_);
  }

 private:
  // The rules of one folder. They apply to paths relative to it.
  struct Level {
    GitIgnore rules;
    size_t begin;  // start of the relative path in a path that begins at the repository's top
  };

  // Reads the rules of the folders between the repository's top and the root. There are none
  // without a repository.
  absl::Status ReadRulesAbove() {
    if (Exists(JoinPath(root_, ".git"))) return absl::OkStatus();
    std::string top = root_;
    while (top != "/" && !Exists(JoinPath(top, ".git"))) top = FolderOf(top);
    if (top == "/") return absl::OkStatus();
    above_ = absl::StrCat(absl::StripPrefix(absl::StripPrefix(root_, top), "/"), "/");
    for (size_t begin = 0; begin < above_.size(); begin = above_.find('/', begin) + 1) {
      MUSTER_ASSIGN_OR_RETURN(GitIgnore rules,
                              ReadGitIgnore(JoinPath(top, above_.substr(0, begin))));
      levels_.push_back({std::move(rules), begin});
    }
    return absl::OkStatus();
  }

  bool Ignored(const std::string& path, bool is_folder) const {
    const std::string full = absl::StrCat(above_, path);
    // The innermost .gitignore that matches decides.
    for (size_t i = levels_.size(); i-- > first_level_;) {
      const absl::string_view relative = absl::string_view(full).substr(levels_[i].begin);
      const GitIgnore::Verdict verdict = levels_[i].rules.Match(relative, is_folder);
      if (verdict != GitIgnore::Verdict::kNone) return verdict == GitIgnore::Verdict::kIgnored;
    }
    return false;
  }

  // Returns true if the path matches kCredentialPatterns and no .gitignore keeps it by name. .ssh
  // cannot be kept: a repository of dotfiles keeps it for git only.
  bool HoldsCredentials(const std::string& path, bool is_folder) const {
    if (credentials_.Match(path, is_folder) != GitIgnore::Verdict::kIgnored) return false;
    if (path == ".ssh" || absl::EndsWith(path, "/.ssh")) return true;
    const std::string full = absl::StrCat(above_, path);
    for (size_t i = levels_.size(); i-- > first_level_;) {
      const absl::string_view relative = absl::string_view(full).substr(levels_[i].begin);
      if (levels_[i].rules.KeepsByName(relative, is_folder)) return false;
    }
    return true;
  }

  // `within` is "" or ends in '/'.
  absl::Status Folder(const std::string& within) {
    const std::string folder = JoinPath(root_, within);
    auto names = NamesIn(folder);
    if (!names.ok()) {
      return Annotate(names.status(),
                      "a folder cannot be listed; let its files be read, or name it "
                      "in .gitignore");
    }
    // A nested repository does not inherit the rules outside it.
    const size_t outer_first = first_level_;
    if (std::find(names->begin(), names->end(), ".git") != names->end()) {
      first_level_ = levels_.size();
    }
    MUSTER_ASSIGN_OR_RETURN(GitIgnore rules, ReadGitIgnore(folder));
    const bool has_rules = !rules.empty();
    if (has_rules) levels_.push_back({std::move(rules), above_.size() + within.size()});
    for (const std::string& name : *names) {
      if (name == ".git") continue;
      MUSTER_RETURN_IF_ERROR(Entry(absl::StrCat(within, name)));
    }
    if (has_rules) levels_.pop_back();
    first_level_ = outer_first;
    return absl::OkStatus();
  }

  absl::Status Entry(const std::string& path) {
    struct stat info {};
    const std::string full = JoinPath(root_, path);
    if (::lstat(full.c_str(), &info) != 0) {
      // ENOENT: deleted since its folder was listed.
      return errno == ENOENT ? absl::OkStatus() : absl::ErrnoToStatus(errno, full);
    }
    if (Ignored(path, S_ISDIR(info.st_mode))) return absl::OkStatus();
    if (HoldsCredentials(path, S_ISDIR(info.st_mode))) {
      with_credentials_.push_back(Printable(path));
      return absl::OkStatus();
    }
    const Identity identity(info.st_dev, info.st_ino);
    if (S_ISDIR(info.st_mode)) {
      return identity == home_ ? absl::OkStatus() : Folder(absl::StrCat(path, "/"));
    }
    if (keys_.contains(identity)) {
      if (withheld_.notice) {
        withheld_.notice(absl::StrCat(Printable(path), " is not sent with the job: it is the key ",
                                      "of your credentials, which had better lie elsewhere"));
      }
      return absl::OkStatus();
    }
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) return absl::OkStatus();
    if (!IsUtf8(path)) not_utf8_.push_back(absl::CHexEscape(path));
    WorkFile file;
    file.path = path;
    TakeStat(info, file);
    if (S_ISLNK(info.st_mode)) MUSTER_RETURN_IF_ERROR(ReadLink(full, file));
    files_.push_back(std::move(file));
    if (static_cast<int64_t>(files_.size()) <= limits_.max_files) return absl::OkStatus();
    return TooLarge(absl::StrCat("more than ", limits_.max_files, " files"),
                    absl::StrCat(limits_.max_files, " files"), /*by_count=*/true);
  }

  absl::Status ReadLink(const std::string& full, WorkFile& file) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(full, error);
    if (error) return absl::ErrnoToStatus(error.value(), full);
    file.link_target = target.string();
    if (!LeadsInside(full, target)) {
      outside_.push_back(Printable(absl::StrCat(file.path, " -> ", file.link_target)));
    } else if (!IsUtf8(file.link_target)) {
      not_utf8_.push_back(absl::CHexEscape(file.link_target));
    }
    return absl::OkStatus();
  }

  // A target that does not exist, or is part of a cycle, is judged by its name.
  bool LeadsInside(const std::string& link, const std::filesystem::path& target) const {
    if (target.is_absolute()) return false;
    const std::filesystem::path joined = std::filesystem::path(FolderOf(link)) / target;
    std::error_code error;
    std::filesystem::path resolved = std::filesystem::weakly_canonical(joined, error);
    if (error) resolved = joined.lexically_normal();
    const std::string inside = resolved.string();
    return root_ == "/" || absl::StartsWith(absl::StrCat(inside, "/"), absl::StrCat(root_, "/"));
  }

  void NoticeCredentials() {
    if (with_credentials_.empty() || !withheld_.notice) return;
    std::sort(with_credentials_.begin(), with_credentials_.end());
    withheld_.notice(absl::StrCat(
        "not sent with the job, because such files usually hold credentials: ",
        Named(with_credentials_, kNamedInNotices),
        "; a line with '!' and the name in .gitignore sends one all the same, except .ssh"));
  }

  absl::Status Refused() const {
    if (!outside_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          root_, " has links that lead out of it, or are absolute: ", Named(outside_),
          "; only this folder is sent, so they would lead nowhere on another machine. Name them in "
          ".gitignore, or make them relative, to something within the folder"));
    }
    if (!not_utf8_.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(root_, " has names that are not UTF-8: ", Named(not_utf8_),
                       "; rename them, or name them in .gitignore"));
    }
    return absl::OkStatus();
  }

  absl::Status TooLarge(absl::string_view has, absl::string_view limit, bool by_count) const {
    return absl::ResourceExhaustedError(absl::StrCat(
        root_, " would be sent to every machine, but holds ", has, ", where ", limit,
        " are the limit. The most is in ", absl::StrJoin(LargestEntries(files_, by_count), ", "),
        "; name in .gitignore what the job does not need, and keep data in storage that every "
        "machine "
        "reaches"));
  }

  std::string root_;
  const Withheld& withheld_;
  const WorkDirLimits limits_;
  std::optional<Identity> home_;
  std::set<Identity> keys_;
  const GitIgnore credentials_ = GitIgnore::Parse(kCredentialPatterns);
  std::string above_;  // path from the repository's top to the root; "" or ends in '/'
  std::vector<Level> levels_;
  size_t first_level_ = 0;  // levels before it belong to an enclosing repository
  std::vector<WorkFile> files_;
  std::vector<std::string> outside_, not_utf8_, with_credentials_;
};

}  // namespace

void TakeStat(const struct stat& info, WorkFile& file) {
  file.size = S_ISREG(info.st_mode) ? info.st_size : 0;
  file.mode = S_ISREG(info.st_mode) && (info.st_mode & S_IXUSR) != 0 ? 0755U : 0644U;
  file.mtime_ns = Nanoseconds(info.st_mtim);
  file.ctime_ns = Nanoseconds(info.st_ctim);
  file.inode = info.st_ino;
}

absl::StatusOr<std::vector<WorkFile>> ListWorkDir(const std::string& root, const Withheld& withheld,
                                                  const WorkDirLimits& limits) {
  return Walk(root, withheld, limits).Run();
}

}  // namespace muster
