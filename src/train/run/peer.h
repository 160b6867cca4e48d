// The HELLO with which a process identifies itself to its peers.
#pragma once

#include <string>

#include "train/run/environment.h"
#include "train/wire/message.h"

namespace muster::train {

// Returns "process 4711 on host", for messages.
std::string ThisProcess();
wire::Frame HelloOf(const Environment& environment);
// Returns the cluster as text; it must be the same in all tasks.
std::string ClusterText(const Environment& environment);

}  // namespace muster::train
