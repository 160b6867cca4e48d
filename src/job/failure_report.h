// Builds failure reports. Pure.
#pragma once

#include <string>
#include <vector>

#include "job/failure.h"

namespace muster::job {

// Returns a list such as "a, b and 297 more".
std::string Enumerate(const std::vector<std::string>& names);

// Returns the earliest failure; among failures of the same time, the one reported first. Returns
// end() if there is none.
std::vector<TaskFailure>::const_iterator EarliestFailure(const std::vector<TaskFailure>& failures);

// Sets report.first to the earliest of `failures`, and report.victims to the later ones and to the
// tasks that Muster `stopped`. REQUIRES: `failures` is not empty.
void CompleteReport(std::vector<TaskFailure> failures, const std::vector<std::string>& stopped,
                    FailureReport& report);

}  // namespace muster::job
