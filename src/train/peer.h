// How a process introduces itself to a parameter server.
#pragma once

#include <string>

#include "train/environment.h"
#include "train/wire/message.h"

namespace muster::train {

// For people: "process 4711 on host".
std::string ThisProcess();
wire::Frame HelloOf(const Environment& environment);
// The cluster as all tasks must know it.
std::string ClusterText(const Environment& environment);

}  // namespace muster::train
