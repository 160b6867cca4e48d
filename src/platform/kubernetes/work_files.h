// Selects and packs the files of the working directory that pods of a job get.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/submission.h"
#include "platform/unsupported.h"
#include "worktree/worktree.h"

namespace muster::kubernetes {

struct SelectedFiles {
  // Roles whose pods get the files: those of a job file that run in the working directory, with a
  // command that names a file there.
  std::vector<std::string> roles;
  // Files that commands name and pods do not get, with the reasons.
  std::vector<platform::Limit> limits;
};

SelectedFiles SelectFiles(const job::Submission& submission);

struct PackedFiles {
  job::KubernetesFiles sent;
  std::vector<std::string> parts;  // of the archive; each fits a ConfigMap
  int64_t files = 0;
  int64_t bytes = 0;                  // of the files
  std::vector<std::string> left_out;  // files that commands name and the rules leave out

  // Returns "3 files (1.2 KiB) of DIR to worker".
  std::string Describe(const std::string& directory) const;
  // Returns a sentence on left_out; "" if it is empty.
  std::string DescribeLeftOut() const;
};

// Returns the archive of the working directory for `roles`, or an empty one if there are none.
// Returns ResourceExhausted if it is too large for ConfigMaps, with the largest entries and the
// remedies, and the errors of ListWorkDir() and CheckSendable().
absl::StatusOr<PackedFiles> PackFiles(const job::Submission& submission,
                                      const std::vector<std::string>& roles,
                                      const worktree::Withheld& withheld);

}  // namespace muster::kubernetes
