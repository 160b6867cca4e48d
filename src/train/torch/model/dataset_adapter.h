// Adapts data sets, which are independent of torch, to tensors.
#pragma once

#include <string>

#include "data/dataset.h"
#include "muster/train.h"
#include "train/core/model_input.h"

namespace muster::train {

// Returns the shapes and types of a data set, for a model.
ModelInput InputOf(const data::Dataset& dataset, const std::string& loss = "");

// Converts a batch to tensors that take ownership of its memory.
Batch ToTensors(data::Batch&& batch);

}  // namespace muster::train
