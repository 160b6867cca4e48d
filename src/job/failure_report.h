// The words of a failure report.
#pragma once

#include <string>
#include <vector>

#include "job/failure.h"

namespace muster {

// "a, b and 297 more".
std::string Enumerate(const std::vector<std::string>& names);

// The earliest, and of several at once the one that was reported first; end() when there is none.
std::vector<TaskFailure>::const_iterator FirstOf(const std::vector<TaskFailure>& failures);

// Names the culprit, the first of `failures` (there is one), and those that fell with it: the later
// failures, and the tasks that Muster `stopped`.
void CompleteReport(std::vector<TaskFailure> failures, const std::vector<std::string>& stopped,
                    FailureReport& report);

}  // namespace muster
