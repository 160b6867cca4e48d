#include "dashboard/prometheus.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "job/states.h"
#include "jobs/results/progress.h"

namespace muster::dashboard {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// Collects metrics by name, as the format wants them.
class Collector {
 public:
  void Add(const std::string& name, const std::string& help, const Labels& labels, double value) {
    Family& family = families_[name];
    family.help = help;
    family.lines.push_back(
        absl::StrCat(name, "{", absl::StrJoin(labels, ",", Label), "} ", Number(value)));
  }
  std::string Text() const {
    std::string text;
    for (const auto& [name, family] : families_) {
      absl::StrAppend(&text, "# HELP ", name, " ", family.help, "\n# TYPE ", name, " gauge\n",
                      absl::StrJoin(family.lines, "\n"), "\n");
    }
    return text;
  }

 private:
  struct Family {
    std::string help;
    std::vector<std::string> lines;
  };
  static void Label(std::string* out, const std::pair<std::string, std::string>& label) {
    absl::StrAppend(
        out, label.first, "=\"",
        absl::StrReplaceAll(label.second, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
  }
  static std::string Number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return absl::StrFormat("%.17g", value);
  }

  std::map<std::string, Family> families_;
};

void AddProgress(const jobs::Progress& progress, const Labels& labels, Collector& out) {
  out.Add("muster_job_step", "The step that the job has reached.", labels,
          static_cast<double>(progress.step));
  if (progress.steps) {
    out.Add("muster_job_steps", "The steps that the job is to train.", labels,
            static_cast<double>(*progress.steps));
  }
  if (progress.loss) out.Add("muster_job_loss", "The last reported loss.", labels, *progress.loss);
  if (progress.examples_per_second) {
    out.Add("muster_job_examples_per_second", "The last reported throughput.", labels,
            *progress.examples_per_second);
  }
}

}  // namespace

absl::StatusOr<std::string> PrometheusText(jobs::Service& service) {
  MUSTER_ASSIGN_OR_RETURN(history::History * history, service.history());
  MUSTER_ASSIGN_OR_RETURN(const auto counts, history->CountJobs());
  Collector out;
  for (const auto& [state, count] : counts) {
    out.Add("muster_jobs", "The number of jobs in each state.",
            {{"state", std::string(job::ToString(state))}}, count);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto active, history->ListJobs({.only_active = true}));
  for (const job::JobRecord& job : active) {
    MUSTER_ASSIGN_OR_RETURN(const auto tasks, history->Tasks(job.id));
    const Labels labels = {{"job", job.id}, {"name", job.name}, {"platform", job.platform}};
    if (const auto progress = jobs::ReadJobProgress(job, tasks)) {
      AddProgress(*progress, labels, out);
    }
    for (const job::TaskRecord& task : tasks) {
      Labels of_task = labels;
      of_task.emplace_back("task", task.id.ToString());
      out.Add("muster_task_up", "1 if the task runs, else 0.", of_task,
              task.state == job::TaskState::kRunning ? 1 : 0);
      out.Add("muster_task_restarts", "The number of restarts of the task.", of_task,
              task.restarts);
    }
  }
  return out.Text();
}

}  // namespace muster::dashboard
