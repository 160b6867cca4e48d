#include "process/cgroup.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"

namespace muster::process {
namespace {

// Returns the numbers of a file with lines "name number"; none if it cannot be read.
std::map<std::string, int64_t> ReadNumbers(const std::string& path) {
  std::map<std::string, int64_t> numbers;
  const std::string text = base::ReadFile(path).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> words = absl::StrSplit(line, ' ');
    int64_t number = 0;
    if (absl::SimpleAtoi(words.second, &number)) numbers[std::string(words.first)] = number;
  }
  return numbers;
}

// Reads io.stat: "8:0 rbytes=1 wbytes=2 …", a line per device. The file is empty before the first
// access.
void ReadIo(const std::string& path, CgroupUsage& usage) {
  const auto text = base::ReadFile(path);
  if (!text.ok()) return;
  int64_t read = 0, written = 0;
  for (absl::string_view word : absl::StrSplit(*text, absl::ByAnyChar(" \n"))) {
    int64_t bytes = 0;
    if (absl::ConsumePrefix(&word, "rbytes=") && absl::SimpleAtoi(word, &bytes)) read += bytes;
    if (absl::ConsumePrefix(&word, "wbytes=") && absl::SimpleAtoi(word, &bytes)) written += bytes;
  }
  usage.read_bytes = read;
  usage.written_bytes = written;
}

// The mount point, which on a machine with both versions is below that of version 1.
std::string FindMount() {
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (base::ReadFile(absl::StrCat(mount, "/cgroup.controllers")).ok()) return mount;
  }
  return "";
}

}  // namespace

std::string CgroupFolder(pid_t pid) {
  const std::string groups = base::ReadFile(absl::StrCat("/proc/", pid, "/cgroup")).value_or("");
  for (absl::string_view line : absl::StrSplit(groups, '\n')) {
    // ".." means that the group is outside of the namespace of this process.
    if (!absl::ConsumePrefix(&line, "0::/") || line.empty() || absl::StrContains(line, "..")) {
      continue;
    }
    const std::string mount = FindMount();
    return mount.empty() ? "" : absl::StrCat(mount, "/", line);
  }
  return "";
}

bool CgroupHasOnly(const std::string& folder, const std::vector<pid_t>& pids) {
  const auto text = base::ReadFile(base::JoinPath(folder, "cgroup.procs"));
  if (!text.ok()) return false;
  for (const absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(line, &pid)) return false;
    if (std::find(pids.begin(), pids.end(), pid) == pids.end()) return false;
  }
  return true;
}

std::optional<CgroupUsage> ReadCgroup(const std::string& folder) {
  const auto cpu = ReadNumbers(base::JoinPath(folder, "cpu.stat"));
  if (!cpu.contains("usage_usec")) return std::nullopt;
  CgroupUsage usage{.cpu = absl::Microseconds(cpu.at("usage_usec"))};
  const auto memory = ReadNumbers(base::JoinPath(folder, "memory.stat"));
  if (memory.contains("anon") && memory.contains("file_mapped")) {
    usage.memory_bytes = memory.at("anon") + memory.at("file_mapped");
  }
  ReadIo(base::JoinPath(folder, "io.stat"), usage);
  return usage;
}

}  // namespace muster::process
