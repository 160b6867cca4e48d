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
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/job_checks.h"
#include "cli/print_json.h"
#include "cli/submit.h"
#include "nlohmann/json.hpp"
#include "platform/local/addresses.h"
#include "platform/ssh/provision.h"
#include "process/spawn.h"
#include "supervise/ports.h"

namespace muster::cli {
namespace {

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
  const std::string detail = absl::StrCat("limit ", limit.rlim_max, ", ", Plural(tasks, "task"),
                                          tasks == 1 ? " needs" : " need", " about ", needed);
  return {limit.rlim_max < needed ? Grade::kMissing : Grade::kOk, "open files", detail};
}

Finding CheckDebugger() {
  const auto gdb = FindProgram("gdb", CurrentEnvironment(), "");
  if (gdb.ok()) return {Grade::kOk, "gdb", *gdb};
  return {Grade::kWarning, "gdb",
          "not found: stacks of a stalled task come from /proc only (apt install gdb)"};
}

absl::Status CheckJob(Context& context, const std::string& file, std::vector<Finding>& findings) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, LoadSubmission(context, file));
  const JobSpec& spec = submission.spec;
  const auto tasks = static_cast<int64_t>(spec.Tasks().size());
  findings.push_back(
      {Grade::kOk, "job file", absl::StrCat(Plural(tasks, "task"), ", no mistakes")});
  MUSTER_ASSIGN_OR_RETURN(auto of_job, CheckJobHere(context.home(), submission));
  std::move(of_job.begin(), of_job.end(), std::back_inserter(findings));
  PortReservations ports;
  const auto assigned = local::AssignAddresses(spec, {}, ports);
  findings.push_back({assigned.ok() ? Grade::kOk : Grade::kMissing, "ports",
                      assigned.ok() ? "free" : std::string(assigned.status().message())});
  if (!spec.model_dir.empty() && spec.model_dir[0] == '/') {
    findings.push_back(CheckDirectory("model dir", spec.model_dir));
  }
  findings.push_back(CheckMemory(&spec));
  findings.push_back(CheckFiles(static_cast<int>(tasks)));
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
    PrintJson(out, json);
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
