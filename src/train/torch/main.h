// The main function of every program that uses the trainer.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/run/environment.h"

namespace muster::train {

// Makes the experiment. Not called for a parameter server, which needs none.
using ExperimentFactory = std::function<absl::StatusOr<Experiment>(const Environment&)>;

int RunMain(int argc, char** argv, const ExperimentFactory& make);

}  // namespace muster::train
