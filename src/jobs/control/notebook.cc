#include "jobs/control/notebook.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::jobs {
namespace {

absl::StatusOr<platform::NotebookHost*> HostOf(Service& service, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(platform::Platform * platform, service.platform(name));
  auto* host = platform::CapabilityOf<platform::NotebookHost>(*platform);
  if (host != nullptr) return host;
  return absl::InvalidArgumentError(
      absl::StrCat("jobs on ", name, " have no notebooks; use --on ", NotebookPlatform(service)));
}

}  // namespace

std::string NotebookPlatform(Service& service) {
  for (const std::string& name : service.platforms().names()) {
    const auto platform = service.platform(name);
    if (platform.ok() && platform::CapabilityOf<platform::NotebookHost>(**platform) != nullptr) {
      return name;
    }
  }
  return "";
}

absl::Status CheckHasNotebooks(Service& service, const std::string& platform) {
  return HostOf(service, platform).status();
}

absl::StatusOr<platform::NotebookAccess> FindNotebook(Service& service,
                                                      const job::Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(platform::NotebookHost * host,
                          HostOf(service, std::string(job::PlatformOf(submission.target))));
  return host->FindNotebook(submission);
}

}  // namespace muster::jobs
