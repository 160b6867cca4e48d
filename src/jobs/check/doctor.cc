#include "jobs/check/doctor.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "jobs/check/check_model_dir.h"
#include "platform/capabilities.h"
#include "process/spawn.h"

namespace muster::jobs {
namespace {

constexpr int64_t kLowDiskBytes = int64_t{1} << 30;
constexpr int64_t kLowMemoryBytes = int64_t{512} << 20;

// Returns the nearest existing path at or above `path`. Inaccessible paths count as absent.
std::string Existing(std::string path) {
  std::error_code error;
  while (path.size() > 1 && !std::filesystem::exists(path, error)) {
    path = std::filesystem::path(path).parent_path().string();
  }
  return path;
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

platform::Finding CheckPidfd() {
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd < 0)
    return {platform::Grade::kMissing, "kernel", "no pidfd_open: Linux 5.9 or later is needed"};
  ::close(static_cast<int>(fd));
  return {platform::Grade::kOk, "kernel", "pidfd, subreaper"};
}

platform::Finding CheckOpenFiles(int tasks) {
  constexpr int kFilesPerTask = 4;
  constexpr int kOwnFiles = 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto needed = static_cast<rlim_t>(tasks) * kFilesPerTask + kOwnFiles;
  const std::string detail =
      absl::StrCat("limit ", limit.rlim_max, ", ", base::Plural(tasks, "task"),
                   tasks == 1 ? " needs" : " need", " about ", needed);
  return {limit.rlim_max < needed ? platform::Grade::kMissing : platform::Grade::kOk, "open files",
          detail};
}

platform::Finding CheckDebugger() {
  const auto gdb = process::FindProgram("gdb", process::CurrentEnvironment(), "");
  if (gdb.ok()) return {platform::Grade::kOk, "gdb", *gdb};
  return {platform::Grade::kWarning, "gdb",
          "not found: stacks of a stalled task come from /proc only (apt install gdb)"};
}

}  // namespace

std::vector<platform::Finding> CheckMachine(const Service& service) {
  return {CheckPidfd(), CheckDirectory("muster home", service.home()), CheckDebugger()};
}

platform::Finding CheckDirectory(const std::string& subject, const std::string& path) {
  const std::string existing = Existing(path);
  if (!IsDirectory(existing)) {
    return {platform::Grade::kMissing, subject, absl::StrCat(existing, " is not a directory")};
  }
  if (::access(existing.c_str(), W_OK) != 0) {
    return {platform::Grade::kMissing, subject,
            absl::StrCat(existing, " is not writable by this user")};
  }
  struct statvfs info {};
  if (::statvfs(existing.c_str(), &info) != 0)
    return {platform::Grade::kWarning, subject, "size unknown"};
  const int64_t available =
      static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const std::string detail = absl::StrCat(path, ": ", base::FormatBytes(available), " free");
  if (available == 0) return {platform::Grade::kMissing, subject, detail};
  return {available < kLowDiskBytes ? platform::Grade::kWarning : platform::Grade::kOk, subject,
          detail};
}

platform::Finding CheckMemory(const job::JobSpec* spec) {
  int64_t available = 0;
  const auto meminfo = base::ReadFile("/proc/meminfo");
  for (absl::string_view line : absl::StrSplit(meminfo.value_or(""), '\n')) {
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    if (!words.empty() && absl::SimpleAtoi(words[0], &available)) available *= 1024;
  }
  int64_t asked = 0;
  if (spec != nullptr) {
    for (const job::RoleSpec& role : spec->roles) {
      asked += role.resources.memory_bytes.value_or(0) * role.replicas;
    }
  }
  std::string detail = absl::StrCat(base::FormatBytes(available), " available");
  if (asked > 0) absl::StrAppend(&detail, ", the job requests ", base::FormatBytes(asked));
  if (asked > available) return {platform::Grade::kMissing, "memory", detail};
  return {available < kLowMemoryBytes ? platform::Grade::kWarning : platform::Grade::kOk, "memory",
          detail};
}

absl::StatusOr<std::vector<platform::Finding>> CheckJob(Service& service,
                                                        const job::Submission& submission,
                                                        const base::Variables& variables) {
  const job::JobSpec& spec = submission.spec;
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(std::string(job::PlatformOf(submission.target))));
  std::vector<platform::Finding> findings;
  if (auto* preflight = platform::CapabilityOf<platform::JobPreflight>(*platform)) {
    MUSTER_ASSIGN_OR_RETURN(findings, preflight->CheckJob(submission, /*thorough=*/true));
  }
  if (!spec.model_dir.empty()) {
    platform::Finding tried = CheckModelDir(spec, variables);
    // For a path the free space matters too.
    const bool local = tried.grade == platform::Grade::kOk && spec.model_dir[0] == '/';
    findings.push_back(local ? CheckDirectory("model dir", spec.model_dir) : std::move(tried));
  }
  findings.push_back(CheckMemory(&spec));
  findings.push_back(CheckOpenFiles(static_cast<int>(spec.Tasks().size())));
  return findings;
}

absl::StatusOr<std::vector<platform::Finding>> CheckTarget(Service& service,
                                                           const job::Target& target) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(std::string(job::PlatformOf(target))));
  auto* preflight = platform::CapabilityOf<platform::TargetPreflight>(*platform);
  if (preflight == nullptr) return std::vector<platform::Finding>();
  return preflight->CheckTarget(target);
}

}  // namespace muster::jobs
