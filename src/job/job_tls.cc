#include "job/job_tls.h"

#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "cluster/address.h"
#include "net/authority.h"

namespace muster {
namespace {

constexpr absl::Duration kLife = absl::Hours(24 * 365 * 5);  // longer than any job
constexpr absl::Duration kSlowestClock = absl::Hours(48);    // of a host: it may be that far behind
constexpr size_t kLongestName = 64;
constexpr const char* kFiles[] = {"ca.crt", "tls.crt", "tls.key"};

std::array<std::string*, 3> ContentsOf(JobTls& tls) {
  return {&tls.authority, &tls.certificate, &tls.key};
}

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

absl::Status EnsureJobTls(const std::string& job, const std::string& folder) {
  JobTls tls;
  size_t there = 0;
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    auto content = ReadFile(JoinPath(folder, kFiles[i]));
    if (absl::IsNotFound(content.status())) continue;
    MUSTER_RETURN_IF_ERROR(content.status());
    *ContentsOf(tls)[i] = *std::move(content);
    ++there;
  }
  if (there > 0) {
    const absl::Status accepted =
        net::CheckServer({tls.certificate, tls.key}, tls.authority, kTaskTlsName, absl::Now());
    if (accepted.ok()) return accepted;
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " has certificates that cannot be used: ", accepted.message(),
                     "; remove ca.crt, tls.crt and tls.key, and new ones are made"));
  }
  MUSTER_ASSIGN_OR_RETURN(tls, MakeJobTls(job));
  MUSTER_RETURN_IF_ERROR(MakeDirectories(folder));
  for (size_t i = 0; i < std::size(kFiles); ++i) {
    MUSTER_RETURN_IF_ERROR(ReplaceFile(JoinPath(folder, kFiles[i]), *ContentsOf(tls)[i]));
  }
  return absl::OkStatus();
}

}  // namespace muster
