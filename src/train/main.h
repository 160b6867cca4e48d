// What every program of the trainer does with its arguments and its environment.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "muster/train.h"
#include "train/environment.h"

namespace muster::train {

// `make` is called once it is known what to do; a parameter server does not need an experiment.
using ExperimentFactory = std::function<absl::StatusOr<Experiment>(const Environment&)>;

int RunMain(int argc, char** argv, const ExperimentFactory& make);

}  // namespace muster::train
