#include "jobs/results/samples.h"

#include <sys/stat.h>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "supervise/job_dir.h"
#include "supervise/usage/sample_file.h"

namespace muster::jobs {
namespace {

// Longer than the time between two samples of a task, also over a slow connection to its host.
constexpr absl::Duration kCurrent = absl::Seconds(30);

// Returns none if the task has no file, or it is not readable.
std::vector<Sample> ReadTask(const job::JobRecord& job, const cluster::TaskId& task) {
  auto samples = supervise::ReadSampleFile(supervise::JobDir(job.directory).samples(task));
  return samples.ok() ? *std::move(samples) : std::vector<Sample>();
}

// The age is that of the file: the clock of the supervisor differs from this one if the machine's
// clock was set since the job started.
absl::Duration AgeOf(const job::JobRecord& job, const cluster::TaskId& task) {
  struct stat info {};
  const std::string path = supervise::JobDir(job.directory).samples(task);
  if (::stat(path.c_str(), &info) != 0) return absl::InfiniteDuration();
  return absl::Now() - absl::TimeFromTimespec(info.st_mtim);
}

}  // namespace

absl::StatusOr<std::vector<TaskSamples>> ReadSamples(Service& service, const job::JobRecord& job) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<job::TaskRecord> tasks, history->Tasks(job.id));
  std::vector<TaskSamples> result;
  result.reserve(tasks.size());
  for (const job::TaskRecord& task : tasks) result.push_back({task.id, ReadTask(job, task.id)});
  return result;
}

TaskUsage UsageOf(const job::TaskRecord& task, const std::vector<Sample>& samples,
                  absl::Duration age) {
  TaskUsage usage;
  for (const Sample& sample : samples) {
    usage.total = usage.total.has_value() ? supervise::Merge(*usage.total, sample) : sample;
  }
  if (job::IsFinal(task.state) || samples.empty()) return usage;
  const Sample& last = samples.back();
  if (last.attempt == task.attempt && age <= kCurrent) usage.current = last;
  return usage;
}

std::map<cluster::TaskId, TaskUsage> ReadUsage(const job::JobRecord& job,
                                               const std::vector<job::TaskRecord>& tasks) {
  std::map<cluster::TaskId, TaskUsage> usage;
  for (const job::TaskRecord& task : tasks) {
    const std::vector<Sample> samples = ReadTask(job, task.id);
    if (!samples.empty()) usage[task.id] = UsageOf(task, samples, AgeOf(job, task.id));
  }
  return usage;
}

}  // namespace muster::jobs
