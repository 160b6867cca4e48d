// How a process introduces itself to a parameter server.
#pragma once

#include "train/environment.h"
#include "train/wire/message.h"

namespace muster::train {

wire::Frame HelloOf(const Environment& environment);
// The cluster as all tasks must know it.
std::string ClusterText(const Environment& environment);

}  // namespace muster::train
