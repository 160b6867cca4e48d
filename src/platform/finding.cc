#include "platform/finding.h"

#include "absl/strings/str_cat.h"

namespace muster::platform {

absl::Status FatalFindings(const std::vector<Finding>& findings,
                           const job::Submission& submission) {
  codec::Diagnostics diagnostics(submission.source_name == "-" ? "standard input"
                                                               : submission.source_name);
  for (const Finding& finding : findings) {
    if (!finding.fatal) continue;
    diagnostics.Add(finding.mark, absl::StrCat(finding.subject, ": ", finding.detail));
  }
  return diagnostics.ToStatus();
}

}  // namespace muster::platform
