#include "worktree/worktree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "worktree/credentials.h"
#include "worktree/gitignore.h"

namespace muster::worktree {
namespace {

constexpr std::array<absl::string_view, 38> kProgramExtensions = {
    "bash", "c",   "cc",    "cfg", "cmake", "conf",       "cpp",   "cu",   "cuh", "cxx",
    "gin",  "go",  "h",     "hpp", "hs",    "ini",        "ipynb", "java", "jl",  "js",
    "lua",  "mjs", "perl",  "php", "pl",    "properties", "py",    "pyi",  "pyx", "r",
    "rb",   "rs",  "scala", "sh",  "toml",  "ts",         "yaml",  "yml"};
static_assert(std::is_sorted(kProgramExtensions.begin(), kProgramExtensions.end()));

constexpr int64_t kMaxGitIgnoreBytes = 16 << 20;
constexpr size_t kMaxNamedInErrors = 5;
constexpr size_t kMaxNamedInNotices = 20;

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
  const std::string path = base::JoinPath(folder, ".gitignore");
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ELOOP) return GitIgnore();
    return absl::ErrnoToStatus(errno, path);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return GitIgnore();
  auto text = base::ReadAll(fd.get(), kMaxGitIgnoreBytes);
  if (!text.ok()) return base::Annotate(text.status(), path);
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
std::string Named(const std::vector<std::string>& names, size_t most = kMaxNamedInErrors) {
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
      result.push_back(
          absl::StrCat(base::Printable(name), " (",
                       by_count ? base::Plural(-size, "file") : base::FormatBytes(-size), ")"));
    }
    return result;
  }
}

class Walk {
 public:
  Walk(std::string root, const Withheld& withheld, const WorkDirLimits& limits)
      : root_(std::move(root)), withheld_(withheld), limits_(limits) {
    if (!withheld.home.empty()) LeaveOut(withheld.home);
    for (const std::string& key : withheld.keys) {
      if (const auto identity = IdentityOf(key)) keys_.insert(*identity);
    }
  }

  // Lists the program's files only: see ListProgram().
  Walk(std::string root, const std::vector<std::string>& except, const ProgramLimits& limits)
      : root_(std::move(root)),
        limits_{.max_bytes = limits.max_bytes, .max_files = limits.max_files},
        program_only_(true),
        entries_left_(limits.max_entries) {
    for (const std::string& folder : except) LeaveOut(folder);
  }

  absl::StatusOr<std::vector<WorkFile>> Run() {
    std::error_code error;
    const std::string canonical = std::filesystem::canonical(root_, error).string();
    if (error) return absl::ErrnoToStatus(error.value(), root_);
    if (!std::filesystem::is_directory(canonical, error)) {
      return absl::InvalidArgumentError(absl::StrCat(root_, " is not a folder"));
    }
    root_ = canonical;
    if (const auto identity = IdentityOf(root_)) device_ = identity->first;
    MUSTER_RETURN_IF_ERROR(ReadRulesAbove());
    MUSTER_RETURN_IF_ERROR(Folder(""));
    MUSTER_RETURN_IF_ERROR(CheckRejected());
    NoticeCredentials();
    std::sort(files_.begin(), files_.end(),
              [](const WorkFile& a, const WorkFile& b) { return a.path < b.path; });
    int64_t total = 0;
    for (const WorkFile& file : files_) total += file.size;
    if (total > limits_.max_bytes) {
      return TooLarge(base::FormatBytes(total), base::FormatBytes(limits_.max_bytes),
                      /*by_count=*/false);
    }
    return std::move(files_);
  }

 private:
  // The rules of one folder. They apply to paths relative to it.
  struct Level {
    GitIgnore rules;
    size_t begin;  // start of the relative path in a path that begins at the repository's top
  };

  void LeaveOut(const std::string& folder) {
    if (const auto identity = IdentityOf(folder)) left_out_.insert(*identity);
  }

  // Reads the rules of the folders between the repository's top and the root. There are none
  // without a repository.
  absl::Status ReadRulesAbove() {
    if (Exists(base::JoinPath(root_, ".git"))) return absl::OkStatus();
    std::string top = root_;
    while (top != "/" && !Exists(base::JoinPath(top, ".git"))) top = base::FolderOf(top);
    if (top == "/") return absl::OkStatus();
    above_ = absl::StrCat(absl::StripPrefix(absl::StripPrefix(root_, top), "/"), "/");
    for (size_t begin = 0; begin < above_.size(); begin = above_.find('/', begin) + 1) {
      MUSTER_ASSIGN_OR_RETURN(GitIgnore rules,
                              ReadGitIgnore(base::JoinPath(top, above_.substr(0, begin))));
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
    const std::string folder = base::JoinPath(root_, within);
    auto names = NamesIn(folder);
    if (!names.ok() && program_only_) return absl::OkStatus();
    if (!names.ok()) {
      return base::Annotate(names.status(),
                            "cannot list a folder of the job; make it readable, or list it "
                            "in .gitignore");
    }
    if (program_only_) {
      if (std::find(names->begin(), names->end(), "pyvenv.cfg") != names->end()) {
        return absl::OkStatus();  // a virtual environment of Python
      }
      entries_left_ -= static_cast<int64_t>(names->size());
      if (entries_left_ < 0) return TooManyEntries();
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
      if (program_only_ && (name == "node_modules" || name == "__pycache__")) continue;
      MUSTER_RETURN_IF_ERROR(Entry(absl::StrCat(within, name)));
    }
    if (has_rules) levels_.pop_back();
    first_level_ = outer_first;
    return absl::OkStatus();
  }

  absl::Status Entry(const std::string& path) {
    struct stat info {};
    const std::string full = base::JoinPath(root_, path);
    if (::lstat(full.c_str(), &info) != 0) {
      // ENOENT: deleted since its folder was listed.
      return errno == ENOENT || program_only_ ? absl::OkStatus() : absl::ErrnoToStatus(errno, full);
    }
    WorkFile file;
    file.path = path;
    TakeStat(info, file);
    // Checked before the rules, which cost far more and would be matched against every data file.
    if (program_only_ && !S_ISDIR(info.st_mode) &&
        (!S_ISREG(info.st_mode) || !IsProgramFile(file) || !base::IsUtf8(path))) {
      return absl::OkStatus();
    }
    if (Ignored(path, S_ISDIR(info.st_mode))) return absl::OkStatus();
    if (HoldsCredentials(path, S_ISDIR(info.st_mode))) {
      with_credentials_.push_back(base::Printable(path));
      return absl::OkStatus();
    }
    const Identity identity(info.st_dev, info.st_ino);
    if (S_ISDIR(info.st_mode)) {
      if (program_only_ && info.st_dev != device_) return absl::OkStatus();
      return left_out_.contains(identity) ? absl::OkStatus() : Folder(absl::StrCat(path, "/"));
    }
    if (keys_.contains(identity)) {
      if (withheld_.notice) {
        withheld_.notice(absl::StrCat(base::Printable(path),
                                      " is not sent with the job, because it contains ",
                                      "your credentials; move it out of this folder"));
      }
      return absl::OkStatus();
    }
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) return absl::OkStatus();
    if (!base::IsUtf8(path)) not_utf8_.push_back(absl::CHexEscape(path));
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
      outside_.push_back(base::Printable(absl::StrCat(file.path, " -> ", file.link_target)));
    } else if (!base::IsUtf8(file.link_target)) {
      not_utf8_.push_back(absl::CHexEscape(file.link_target));
    }
    return absl::OkStatus();
  }

  // A target that does not exist, or is part of a cycle, is judged by its name.
  bool LeadsInside(const std::string& link, const std::filesystem::path& target) const {
    if (target.is_absolute()) return false;
    const std::filesystem::path joined = std::filesystem::path(base::FolderOf(link)) / target;
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
        "not sent with the job, because such files usually contain credentials: ",
        Named(with_credentials_, kMaxNamedInNotices),
        "; to send one, add a line with '!' and its name to .gitignore (not possible for .ssh)"));
  }

  absl::Status CheckRejected() const {
    if (!outside_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          root_, " has links that are absolute or lead out of it: ", Named(outside_),
          "; they would be broken on another machine, which gets this folder only. List them in "
          ".gitignore, or make them relative links within the folder"));
    }
    if (!not_utf8_.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(root_, " has names that are not UTF-8: ", Named(not_utf8_),
                       "; rename them, or list them in .gitignore"));
    }
    return absl::OkStatus();
  }

  absl::Status TooManyEntries() const {
    return absl::ResourceExhaustedError(
        absl::StrCat(root_, " has too many files to look for the job's program among them; run ",
                     "the job from a folder of its own, or list data in .gitignore"));
  }

  absl::Status TooLarge(absl::string_view has, absl::string_view limit, bool by_count) const {
    if (program_only_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the job's program in ", root_, " has ", has, " of source code and executables; the ",
          "limit is ", limit, ". The largest entries are ",
          absl::StrJoin(LargestEntries(files_, by_count), ", "),
          "; list those that the job does not need in .gitignore"));
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        root_, " is too large to be sent to every machine: ", has, "; the limit is ", limit,
        ". The largest entries are ", absl::StrJoin(LargestEntries(files_, by_count), ", "),
        "; list files that the job does not need in .gitignore, and keep data in storage that "
        "every "
        "machine "
        "reaches"));
  }

  std::string root_;
  const Withheld withheld_;
  const WorkDirLimits limits_;
  const bool program_only_ = false;
  int64_t entries_left_ = 0;     // if program_only_
  dev_t device_ = 0;             // of the root
  std::set<Identity> left_out_;  // folders
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

bool IsProgramFile(const WorkFile& file) {
  if (file.is_link()) return false;
  if (file.mode == 0755) return true;
  const std::string name = file.path.substr(file.path.rfind('/') + 1);
  if (name == "Makefile" || name == "requirements.txt") return true;
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string extension = absl::AsciiStrToLower(name.substr(dot + 1));
  return std::binary_search(kProgramExtensions.begin(), kProgramExtensions.end(), extension);
}

absl::StatusOr<std::vector<WorkFile>> ListProgram(const std::string& root,
                                                  const std::vector<std::string>& except,
                                                  const ProgramLimits& limits) {
  return Walk(root, except, limits).Run();
}

absl::StatusOr<std::vector<WorkFile>> ListWorkDir(const std::string& root, const Withheld& withheld,
                                                  const WorkDirLimits& limits) {
  return Walk(root, withheld, limits).Run();
}

}  // namespace muster::worktree
