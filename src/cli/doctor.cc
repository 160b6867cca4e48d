// muster doctor: what this machine lacks for Muster, or for one job.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/shell_line.h"
#include "cli/submit.h"
#include "launch/job_dir.h"
#include "launch/local/addresses.h"
#include "launch/local/launch.h"
#include "launch/ports.h"
#include "launch/ssh/ready.h"
#include "nlohmann/json.hpp"
#include "process/spawn.h"

namespace muster::cli {
namespace {

enum class Grade { kOk, kWarning, kMissing };

struct Finding {
  Grade grade;
  std::string subject;
  std::string detail;
};

constexpr int64_t kLittleDisk = int64_t{1} << 30;
constexpr int64_t kLittleMemory = int64_t{512} << 20;

const char* Name(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kWarning:
      return "warning";
    case Grade::kMissing:
      return "missing";
  }
  return "";
}

// The nearest path that exists at or above `path`. What may not be looked at counts as absent.
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

Finding CheckDirectory(const std::string& what, const std::string& path) {
  const std::string existing = Existing(path);
  if (!IsDirectory(existing)) {
    return {Grade::kMissing, what, absl::StrCat(existing, " is not a directory")};
  }
  if (::access(existing.c_str(), W_OK) != 0) {
    return {Grade::kMissing, what, absl::StrCat(existing, " is not writable for this user")};
  }
  struct statvfs info {};
  if (::statvfs(existing.c_str(), &info) != 0) return {Grade::kWarning, what, "size unknown"};
  const int64_t available =
      static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const std::string detail = absl::StrCat(path, ": ", FormatBytes(available), " free");
  if (available == 0) return {Grade::kMissing, what, detail};
  return {available < kLittleDisk ? Grade::kWarning : Grade::kOk, what, detail};
}

Finding CheckMemory(const JobSpec* spec) {
  int64_t available = 0;
  const auto meminfo = ReadFile("/proc/meminfo");
  for (absl::string_view line : absl::StrSplit(meminfo.value_or(""), '\n')) {
    if (!absl::ConsumePrefix(&line, "MemAvailable:")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    if (!words.empty() && absl::SimpleAtoi(words[0], &available)) available *= 1024;
  }
  int64_t asked = 0;
  if (spec != nullptr) {
    for (const RoleSpec& role : spec->roles) {
      asked += role.resources.memory_bytes.value_or(0) * role.replicas;
    }
  }
  std::string detail = absl::StrCat(FormatBytes(available), " available");
  if (asked > 0) absl::StrAppend(&detail, ", the job asks for ", FormatBytes(asked));
  if (asked > available) return {Grade::kMissing, "memory", detail};
  return {available < kLittleMemory ? Grade::kWarning : Grade::kOk, "memory", detail};
}

Finding CheckPidfd() {
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd < 0) return {Grade::kMissing, "kernel", "no pidfd_open: Linux 5.9 or later is needed"};
  ::close(static_cast<int>(fd));
  return {Grade::kOk, "kernel", "pidfd, subreaper"};
}

Finding CheckFiles(int tasks) {
  constexpr int kFilesPerTask = 4;
  constexpr int kOwnFiles = 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto needed = static_cast<rlim_t>(tasks) * kFilesPerTask + kOwnFiles;
  const std::string detail =
      absl::StrCat("limit ", limit.rlim_max, ", ", tasks, " tasks need about ", needed);
  return {limit.rlim_max < needed ? Grade::kMissing : Grade::kOk, "open files", detail};
}

Finding CheckDebugger() {
  const auto gdb = FindProgram("gdb", CurrentEnvironment(), "");
  if (gdb.ok()) return {Grade::kOk, "gdb", *gdb};
  return {Grade::kWarning, "gdb",
          "not found: stacks of a stalled task come from /proc only (apt install gdb)"};
}

Finding CheckProgram(const std::string& role, const TaskLaunch& launch) {
  auto env = CurrentEnvironment();
  for (const auto& [name, value] : launch.env) env[name] = value;
  auto program = FindProgram(launch.argv[0], env, launch.working_dir);
  if (program.ok() && launch.argv.size() == 3 && launch.argv[0] == "/bin/sh" &&
      launch.argv[1] == "-c") {
    const std::string first = ProgramOfShellLine(launch.argv[2]);
    if (!first.empty()) program = FindProgram(first, env, launch.working_dir);
  }
  return {program.ok() ? Grade::kOk : Grade::kMissing, absl::StrCat("program of ", role),
          program.ok() ? *program : std::string(program.status().message())};
}

Finding CheckWorkingDirectory(const std::string& role, const TaskLaunch& launch) {
  const bool there = IsDirectory(launch.working_dir);
  return {there ? Grade::kOk : Grade::kMissing, absl::StrCat("directory of ", role),
          absl::StrCat(launch.working_dir, there ? "" : " is not a directory")};
}

absl::Status CheckJob(Context& context, const std::string& file, std::vector<Finding>& findings) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, LoadSubmission(context, file));
  const JobSpec& spec = submission.spec;
  findings.push_back(
      {Grade::kOk, "job file", absl::StrCat(spec.Tasks().size(), " tasks, no mistakes")});
  const auto dir = JobDir::Of(context.home(), submission.id);
  const ClusterSpec cluster = local::PlanAddresses(spec, {});
  for (const RoleSpec& role : spec.roles) {
    MUSTER_ASSIGN_OR_RETURN(const TaskLaunch launch,
                            local::LaunchOf(dir, submission, cluster, {role.name, 0}, 0, 0));
    findings.push_back(CheckWorkingDirectory(role.name, launch));
    findings.push_back(CheckProgram(role.name, launch));
  }
  PortReservations ports;
  const auto assigned = local::AssignAddresses(spec, {}, ports);
  findings.push_back({assigned.ok() ? Grade::kOk : Grade::kMissing, "ports",
                      assigned.ok() ? "free" : std::string(assigned.status().message())});
  if (!spec.model_dir.empty() && spec.model_dir[0] == '/') {
    findings.push_back(CheckDirectory("model dir", spec.model_dir));
  }
  findings.push_back(CheckMemory(&spec));
  findings.push_back(CheckFiles(static_cast<int>(spec.Tasks().size())));
  return absl::OkStatus();
}

absl::Status CheckHosts(Context& context, const std::string& text, std::vector<Finding>& findings) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<HostSpec> hosts, ParseHosts(text));
  MUSTER_ASSIGN_OR_RETURN(const auto agent, ssh::AgentProgram::Find(context.program()));
  for (const ssh::HostFinding& finding : ssh::Examine(hosts, agent)) {
    findings.push_back(
        {finding.status.ok() ? Grade::kOk : Grade::kMissing, finding.host, finding.detail});
  }
  return absl::OkStatus();
}

struct DoctorOptions {
  std::string file;
  std::string hosts;
  bool json = false;
};

absl::StatusOr<int> Doctor(Context& context, const DoctorOptions& options) {
  std::vector<Finding> findings = {CheckPidfd(), CheckDirectory("muster home", context.home()),
                                   CheckDebugger()};
  if (options.file.empty()) {
    findings.push_back(CheckMemory(nullptr));
  } else {
    MUSTER_RETURN_IF_ERROR(CheckJob(context, options.file, findings));
  }
  if (!options.hosts.empty()) {
    MUSTER_RETURN_IF_ERROR(CheckHosts(context, options.hosts, findings));
  }
  Terminal& out = context.out();
  Table table({"CHECK", "RESULT", "DETAIL"});
  nlohmann::json json = nlohmann::json::array();
  bool missing = false;
  for (const Finding& finding : findings) {
    const Style style = finding.grade == Grade::kOk        ? Style::kGreen
                        : finding.grade == Grade::kWarning ? Style::kYellow
                                                           : Style::kRed;
    missing |= finding.grade == Grade::kMissing;
    table.Add({finding.subject, out.Paint(style, Name(finding.grade)), finding.detail});
    json.push_back(
        {{"check", finding.subject}, {"result", Name(finding.grade)}, {"detail", finding.detail}});
  }
  if (options.json) {
    out.PrintLine(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    out.Print(table.Render(out));
  }
  return missing ? kFailure : kSuccess;
}

}  // namespace

void AddDoctorCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("doctor", "Check what this machine lacks, for one job too");
  auto options = std::make_shared<DoctorOptions>();
  command.Argument("FILE", &options->file, "A job file to check for");
  command.Option("--hosts", &options->hosts, "Also check hosts over SSH: vm1,me@gpu1");
  command.Flag("--json", &options->json, "Print JSON");
  command.OnCall([&context, options] { return Doctor(context, *options); });
}

}  // namespace muster::cli
