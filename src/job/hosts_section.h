// The `hosts` of a native job file.
#pragma once

#include <string>
#include <vector>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/host_spec.h"
#include "job/job_spec.h"

namespace muster {

// A list of texts, as ParseHost reads them, and of maps. A key's path is resolved against
// `working_dir`; the roles must be those of `spec`.
std::vector<HostSpec> ReadHosts(const codec::Node& node, const std::string& working_dir,
                                const JobSpec& spec, codec::Diagnostics& diagnostics);

}  // namespace muster
