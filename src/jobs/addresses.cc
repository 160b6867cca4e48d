#include "jobs/addresses.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::jobs {
namespace {

constexpr int kFirstPort = 2222;

}  // namespace

absl::StatusOr<cluster::ClusterSpec> AddressesBeforeStart(Service& service,
                                                          job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform,
                          service.platform(std::string(job::PlatformOf(submission.target))));
  const platform::Traits& traits = platform->traits();
  if (!traits.assigns_addresses_late) MUSTER_RETURN_IF_ERROR(platform->Prepare(submission));
  MUSTER_ASSIGN_OR_RETURN(cluster::ClusterSpec cluster, platform->Addresses(submission));
  int port = kFirstPort;
  for (const cluster::TaskId& task : submission.spec.Tasks()) {
    if (cluster.AddressOf(task) != platform::kUnassigned) continue;
    if (!traits.runs_here) {
      return absl::FailedPreconditionError(
          absl::StrCat(task.ToString(), " gets its address when the job starts on ", traits.title,
                       traits.assigns_addresses_late ? ": " : ": set 'port' of its role, or ",
                       "run the job and give its name instead of the file"));
    }
    cluster.Set(task, absl::StrCat("127.0.0.1:", port++));
  }
  return cluster;
}

}  // namespace muster::jobs
