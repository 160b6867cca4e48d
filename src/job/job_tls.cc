#include "job/job_tls.h"

#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "net/authority.h"

namespace muster::job {
namespace {

constexpr absl::Duration kValidity = absl::Hours(24 * 365 * 5);  // exceeds the duration of any job
constexpr absl::Duration kMaxClockLag = absl::Hours(48);         // tolerated lag of a host's clock
// The upper bound of a common name in X.509 (RFC 5280).
constexpr size_t kMaxCommonNameLength = 64;
constexpr const char* kFiles[] = {"ca.crt", "tls.crt", "tls.key"};

std::array<std::string*, 3> ContentsOf(JobTls& tls) {
  return {&tls.authority, &tls.certificate, &tls.key};
}

}  // namespace

absl::StatusOr<JobTls> MakeJobTls(const std::string& job) {
  const absl::Time from = absl::Now() - kMaxClockLag;
  const absl::Time until = absl::Now() + kValidity;
  MUSTER_ASSIGN_OR_RETURN(
      const net::Authority authority,
      net::Authority::Create(
          {.name = job.substr(0, kMaxCommonNameLength), .from = from, .until = until}));
  MUSTER_ASSIGN_OR_RETURN(const net::Certificate issued,
                          authority.Issue({.name = cluster::kTaskTlsName,
                                           .hosts = absl::StrCat("DNS:", cluster::kTaskTlsName),
                                           .from = from,
                                           .until = until}));
  return JobTls{authority.certificate(), issued.certificate, issued.key};
}

absl::Status EnsureJobTls(const std::string& job, const std::string& folder) {
  JobTls tls;
  size_t there = 0;
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    auto content = base::ReadFile(base::JoinPath(folder, kFiles[i]));
    if (absl::IsNotFound(content.status())) continue;
    MUSTER_RETURN_IF_ERROR(content.status());
    *ContentsOf(tls)[i] = *std::move(content);
    ++there;
  }
  // A partial set is an error too: other tasks may already use the files that exist.
  if (there > 0) {
    const absl::Status accepted = net::CheckServer({tls.certificate, tls.key}, tls.authority,
                                                   cluster::kTaskTlsName, absl::Now());
    if (accepted.ok()) return accepted;
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " has certificates that cannot be used: ", accepted.message(),
                     "; remove ca.crt, tls.crt and tls.key to create new ones"));
  }
  MUSTER_ASSIGN_OR_RETURN(tls, MakeJobTls(job));
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder));
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    MUSTER_RETURN_IF_ERROR(
        base::ReplaceFile(base::JoinPath(folder, kFiles[i]), *ContentsOf(tls)[i]));
  }
  return absl::OkStatus();
}

}  // namespace muster::job
