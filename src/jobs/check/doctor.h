// Checks the requirements of Muster, of a job or of a target.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/variables.h"
#include "job/submission.h"
#include "job/target.h"
#include "jobs/service.h"
#include "platform/finding.h"

namespace muster::jobs {

// Checks that this machine can supervise jobs.
std::vector<platform::Finding> CheckMachine(const Service& service);

// Checks the memory of this machine, which must suffice for the requests of `spec`; null = no job.
platform::Finding CheckMemory(const job::JobSpec* spec);

// Checks that `path` is, or can become, a writable directory on a file system with free space.
platform::Finding CheckDirectory(const std::string& subject, const std::string& path);

// Checks that a job can run on its target: the checks of its platform, the model dir, memory and
// open files. `variables` are those from which credentials of the model dir's storage are read.
absl::StatusOr<std::vector<platform::Finding>> CheckJob(Service& service,
                                                        const job::Submission& submission,
                                                        const base::Variables& variables);

// Checks the machines of a target. Returns nothing if its platform has no such check.
absl::StatusOr<std::vector<platform::Finding>> CheckTarget(Service& service,
                                                           const job::Target& target);

}  // namespace muster::jobs
