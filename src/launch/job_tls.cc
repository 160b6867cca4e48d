#include "launch/job_tls.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "net/authority.h"

namespace muster {
namespace {

constexpr absl::Duration kLife = absl::Hours(24 * 365 * 5);  // longer than any job
constexpr absl::Duration kSlowestClock = absl::Hours(48);    // of a host: it may be that far behind
constexpr size_t kLongestName = 64;

}  // namespace

absl::StatusOr<JobTls> MakeJobTls(const std::string& job) {
  const absl::Time from = absl::Now() - kSlowestClock;
  const absl::Time until = absl::Now() + kLife;
  MUSTER_ASSIGN_OR_RETURN(
      const net::Authority authority,
      net::Authority::Create({.name = job.substr(0, kLongestName), .from = from, .until = until}));
  MUSTER_ASSIGN_OR_RETURN(const net::Certificate issued,
                          authority.Issue({.name = kTaskTlsName,
                                           .hosts = absl::StrCat("DNS:", kTaskTlsName),
                                           .from = from,
                                           .until = until}));
  return JobTls{authority.certificate(), issued.certificate, issued.key};
}

}  // namespace muster
