// Reads `hosts` in a native job file.
#pragma once

#include <string>
#include <vector>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/host_spec.h"
#include "job/job_spec.h"

namespace muster::job {

// Returns the hosts of a list whose items are maps or texts in the form of ParseHost(). Resolves
// the paths of keys against `working_dir`. Reports roles that are not in `spec`.
std::vector<HostSpec> ReadHosts(const codec::Node& node, const std::string& working_dir,
                                const JobSpec& spec, codec::Diagnostics& diagnostics);

}  // namespace muster::job
