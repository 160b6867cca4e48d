#include "job/failure_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace muster::job {
namespace {

std::string DescribeVictim(const TaskFailure& failure, absl::Time first) {
  return absl::StrFormat("%s: %s, %.1f s later", failure.task.ToString(), failure.cause,
                         absl::ToDoubleSeconds(failure.time - first));
}

}  // namespace

std::string Enumerate(const std::vector<std::string>& names) {
  constexpr size_t kMaxNames = 8;
  if (names.size() <= kMaxNames) return absl::StrJoin(names, ", ");
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + kMaxNames, ", "), " and ",
                      names.size() - kMaxNames, " more");
}

std::vector<TaskFailure>::const_iterator EarliestFailure(const std::vector<TaskFailure>& failures) {
  return std::min_element(
      failures.begin(), failures.end(),
      [](const TaskFailure& a, const TaskFailure& b) { return a.time < b.time; });
}

void CompleteReport(std::vector<TaskFailure> failures, const std::vector<std::string>& stopped,
                    FailureReport& report) {
  // Reports of several hosts may arrive out of order.
  std::stable_sort(failures.begin(), failures.end(),
                   [](const TaskFailure& a, const TaskFailure& b) { return a.time < b.time; });
  report.first = failures.front();
  for (size_t i = 1; i < failures.size(); ++i) {
    report.victims.push_back(DescribeVictim(failures[i], failures.front().time));
  }
  if (!stopped.empty()) {
    report.victims.push_back(absl::StrCat(Enumerate(stopped), ": stopped by muster"));
  }
}

}  // namespace muster::job
