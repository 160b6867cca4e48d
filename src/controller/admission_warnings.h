// What a TFJob says that will have no effect.
#pragma once

#include <string>
#include <vector>

#include "controller/conditions.h"

namespace muster::controller {

// For kubectl's "Warning:" lines; of at most 20 things. The definition of TFJobs leaves pod
// templates to the API server, which drops what it does not know once the pods are made. `job` is
// not trusted.
std::vector<std::string> WarningsOf(const Json& job);

}  // namespace muster::controller
