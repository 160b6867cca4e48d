#include "process/usage.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"

namespace muster::process {
namespace {

struct DiskCounters {
  int64_t read = 0;
  int64_t written = 0;
};

// Returns nullopt if the process has ended, belongs to another user, or the kernel has no counters.
std::optional<DiskCounters> ReadDiskCounters(pid_t pid) {
  const auto text = base::ReadFile(absl::StrCat("/proc/", pid, "/io"));
  if (!text.ok()) return std::nullopt;
  std::optional<int64_t> read, written;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    int64_t bytes = 0;
    if (absl::ConsumePrefix(&line, "read_bytes: ") && absl::SimpleAtoi(line, &bytes)) read = bytes;
    if (absl::ConsumePrefix(&line, "write_bytes: ") && absl::SimpleAtoi(line, &bytes)) {
      written = bytes;
    }
  }
  if (!read.has_value() || !written.has_value()) return std::nullopt;
  return DiskCounters{*read, *written};
}

std::string NetworkNamespace(const std::string& process) {
  char name[PATH_MAX];
  const ssize_t size =
      ::readlink(absl::StrCat("/proc/", process, "/ns/net").c_str(), name, sizeof(name));
  return size < 0 ? "" : std::string(name, static_cast<size_t>(size));
}

TreeCounter::Entry EntryOf(const ProcessInfo& process, int64_t value, int64_t from_children) {
  return {.pid = process.pid,
          .start_ticks = process.start_ticks,
          .parent = process.parent,
          .value = value,
          .from_children = from_children};
}

void Increase(std::optional<int64_t>& total, int64_t by) {
  total = total.value_or(0) + std::max<int64_t>(0, by);
}

}  // namespace

Usage UsageMeter::Read(const std::vector<ProcessInfo>& processes) {
  const std::optional<CgroupUsage> group = ReadOwnGroup(processes);
  ReadCounters(processes, group);
  ReadNetwork(processes.front().pid);
  int64_t resident = 0;
  for (const ProcessInfo& process : processes) resident += process.resident_bytes;
  usage_.memory_bytes = resident;
  if (group.has_value() && group->memory_bytes.has_value()) {
    usage_.memory_bytes = group->memory_bytes;
  }
  return usage_;
}

Usage UsageMeter::ReadLast(const ProcessInfo& root) {
  ReadCounters({root}, std::nullopt);
  usage_.memory_bytes.reset();
  return usage_;
}

void UsageMeter::ReadCounters(const std::vector<ProcessInfo>& processes,
                              const std::optional<CgroupUsage>& group) {
  std::vector<TreeCounter::Entry> cpu, read, written;
  bool has_disk = false;
  for (const ProcessInfo& process : processes) {
    cpu.push_back(
        EntryOf(process, process.cpu_ticks + process.waited_cpu_ticks, process.waited_cpu_ticks));
    const auto disk = ReadDiskCounters(process.pid);
    if (!disk.has_value()) continue;
    has_disk = true;
    // The kernel adds the counters of a child to those of the process itself.
    read.push_back(EntryOf(process, disk->read, disk->read));
    written.push_back(EntryOf(process, disk->written, disk->written));
  }
  static const double kSecondsPerTick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const Totals tree{
      .cpu = absl::Seconds(static_cast<double>(cpu_ticks_.Update(cpu)) * kSecondsPerTick),
      .read = read_bytes_.Update(read),
      .written = written_bytes_.Update(written)};
  const Totals before = std::exchange(tree_, tree);
  const std::optional<CgroupUsage> last = std::exchange(group_, group);
  // The group counts exactly, but only what happens in it, so its counters are compared with its
  // own. Without two readings of it, the tree has to do.
  const bool both = last.has_value() && group.has_value();
  usage_.cpu +=
      both ? std::max(absl::ZeroDuration(), group->cpu - last->cpu) : tree.cpu - before.cpu;
  if (both && last->read_bytes.has_value() && group->read_bytes.has_value()) {
    Increase(usage_.read_bytes, *group->read_bytes - *last->read_bytes);
    Increase(usage_.written_bytes, *group->written_bytes - *last->written_bytes);
  } else if (has_disk) {
    Increase(usage_.read_bytes, tree.read - before.read);
    Increase(usage_.written_bytes, tree.written - before.written);
  }
}

std::optional<CgroupUsage> UsageMeter::ReadOwnGroup(const std::vector<ProcessInfo>& processes) {
  const std::string folder = CgroupFolder(processes.front().pid);
  if (folder != group_folder_) {
    group_folder_ = folder;
    group_.reset();  // of another group
  }
  if (folder.empty() || folder == CgroupFolder(::getpid())) return std::nullopt;
  std::vector<pid_t> pids;
  for (const ProcessInfo& process : processes) pids.push_back(process.pid);
  if (!CgroupHasOnly(folder, pids)) return std::nullopt;
  return ReadCgroup(folder);
}

void UsageMeter::ReadNetwork(pid_t root) {
  usage_.received_bytes.reset();
  usage_.sent_bytes.reset();
  const std::string name = NetworkNamespace(absl::StrCat(root));
  if (name.empty() || name == NetworkNamespace("self")) return;
  const auto text = base::ReadFile(absl::StrCat("/proc/", root, "/net/dev"));
  if (!text.ok()) return;
  int64_t received = 0, sent = 0;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    // "  eth0: <received bytes> <7 more> <sent bytes> <7 more>"; two header lines have no colon.
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ':');
    if (parts.size() != 2 || absl::StripAsciiWhitespace(parts[0]) == "lo") continue;
    const std::vector<absl::string_view> fields =
        absl::StrSplit(parts[1], ' ', absl::SkipWhitespace());
    int64_t in = 0, out = 0;
    if (fields.size() < 9 || !absl::SimpleAtoi(fields[0], &in) ||
        !absl::SimpleAtoi(fields[8], &out)) {
      continue;
    }
    received += in;
    sent += out;
  }
  usage_.received_bytes = received;
  usage_.sent_bytes = sent;
}

}  // namespace muster::process
