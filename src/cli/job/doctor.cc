// muster doctor: checks the requirements of Muster, or of one job, on this machine.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "base/variables.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job/job_file.h"
#include "cli/job/target_options.h"
#include "cli/terminal/print_json.h"
#include "jobs/check_model_dir.h"
#include "nlohmann/json.hpp"
#include "platform/capabilities.h"
#include "process/spawn.h"

namespace muster::cli {
namespace {

constexpr int64_t kLittleDisk = int64_t{1} << 30;
constexpr int64_t kLittleMemory = int64_t{512} << 20;

const char* Name(platform::Grade grade) {
  switch (grade) {
    case platform::Grade::kOk:
      return "ok";
    case platform::Grade::kWarning:
      return "warning";
    case platform::Grade::kMissing:
      return "missing";
  }
  return "";
}

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

platform::Finding CheckDirectory(const std::string& what, const std::string& path) {
  const std::string existing = Existing(path);
  if (!IsDirectory(existing)) {
    return {platform::Grade::kMissing, what, absl::StrCat(existing, " is not a directory")};
  }
  if (::access(existing.c_str(), W_OK) != 0) {
    return {platform::Grade::kMissing, what,
            absl::StrCat(existing, " is not writable by this user")};
  }
  struct statvfs info {};
  if (::statvfs(existing.c_str(), &info) != 0)
    return {platform::Grade::kWarning, what, "size unknown"};
  const int64_t available =
      static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const std::string detail = absl::StrCat(path, ": ", base::FormatBytes(available), " free");
  if (available == 0) return {platform::Grade::kMissing, what, detail};
  return {available < kLittleDisk ? platform::Grade::kWarning : platform::Grade::kOk, what, detail};
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
  return {available < kLittleMemory ? platform::Grade::kWarning : platform::Grade::kOk, "memory",
          detail};
}

platform::Finding CheckPidfd() {
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd < 0)
    return {platform::Grade::kMissing, "kernel", "no pidfd_open: Linux 5.9 or later is needed"};
  ::close(static_cast<int>(fd));
  return {platform::Grade::kOk, "kernel", "pidfd, subreaper"};
}

platform::Finding CheckFiles(int tasks) {
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

absl::Status CheckJob(Context& context, const std::string& file, const job::Overrides& overrides,
                      std::vector<platform::Finding>& findings) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission, LoadJobFile(context, file, overrides));
  const job::JobSpec& spec = submission.spec;
  const auto tasks = static_cast<int64_t>(spec.Tasks().size());
  findings.push_back(
      {platform::Grade::kOk, "job file", absl::StrCat(base::Plural(tasks, "task"), ", valid")});
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          context.jobs().platform(std::string(job::PlatformOf(submission.target))));
  if (auto* preflight = platform::CapabilityOf<platform::JobPreflight>(*platform)) {
    MUSTER_ASSIGN_OR_RETURN(auto of_job, preflight->CheckJob(submission, /*thorough=*/true));
    std::move(of_job.begin(), of_job.end(), std::back_inserter(findings));
  }
  if (!spec.model_dir.empty()) {
    platform::Finding tried = jobs::CheckModelDir(spec, base::ProcessVariables());
    // For a path the free space matters too.
    const bool local = tried.grade == platform::Grade::kOk && spec.model_dir[0] == '/';
    findings.push_back(local ? CheckDirectory("model dir", spec.model_dir) : std::move(tried));
  }
  findings.push_back(CheckMemory(&spec));
  findings.push_back(CheckFiles(static_cast<int>(tasks)));
  return absl::OkStatus();
}

struct DoctorOptions {
  std::string file;
  job::Overrides overrides;
  TargetOptions target;
  bool json = false;
};

// Checks the machines of each platform whose options are given.
absl::Status CheckTargets(Context& context, const TargetOptions& target,
                          std::vector<platform::Finding>& findings) {
  for (const std::string& name : context.platforms().names()) {
    const platform::Options* options = target.Of(name);
    if (options == nullptr || options->FirstGiven().empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, context.jobs().platform(name));
    auto* preflight = platform::CapabilityOf<platform::TargetPreflight>(*platform);
    if (preflight == nullptr) continue;
    MUSTER_ASSIGN_OR_RETURN(auto of_target, preflight->CheckTarget(options->ToTarget()));
    std::move(of_target.begin(), of_target.end(), std::back_inserter(findings));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Doctor(Context& context, const DoctorOptions& options) {
  std::vector<platform::Finding> findings = {
      CheckPidfd(), CheckDirectory("muster home", context.home()), CheckDebugger()};
  if (options.file.empty()) {
    MUSTER_RETURN_IF_ERROR(
        CheckNoOverrides(options.overrides, "the job file is missing; usage: muster doctor FILE"));
    findings.push_back(CheckMemory(nullptr));
  } else {
    MUSTER_RETURN_IF_ERROR(CheckJob(context, options.file, options.overrides, findings));
  }
  MUSTER_RETURN_IF_ERROR(CheckTargets(context, options.target, findings));
  Terminal& out = context.out();
  Table table({"CHECK", "RESULT", "DETAIL"});
  nlohmann::json json = nlohmann::json::array();
  bool missing = false;
  for (const platform::Finding& finding : findings) {
    const Style style = finding.grade == platform::Grade::kOk        ? Style::kGreen
                        : finding.grade == platform::Grade::kWarning ? Style::kYellow
                                                                     : Style::kRed;
    missing |= finding.grade == platform::Grade::kMissing;
    table.Add({finding.subject, out.Paint(style, Name(finding.grade)), finding.detail});
    json.push_back(
        {{"check", finding.subject}, {"result", Name(finding.grade)}, {"detail", finding.detail}});
  }
  if (options.json) {
    PrintJson(out, json);
  } else {
    out.Print(table.Render(out));
  }
  return missing ? kFailure : kSuccess;
}

}  // namespace

void AddDoctorCommand(Command& program, Context& context) {
  Command& command = program.AddCommand(
      "doctor", "Check that this machine, or a job's machines, meet the requirements");
  auto options = std::make_shared<DoctorOptions>();
  command.Argument("FILE", &options->file, "The job file (default: check the machine only)");
  AddOverrideOptions(command, &options->overrides);
  options->target.AddWithoutPlatformTo(command, context, platform::OptionUse::kDoctor);
  command.Flag("--json", &options->json, "Print JSON");
  command.OnCall([&context, options] { return Doctor(context, *options); });
}

}  // namespace muster::cli
