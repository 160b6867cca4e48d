// Between data sets, which know nothing of torch, and tensors.
#pragma once

#include <string>

#include "data/dataset.h"
#include "muster/train.h"
#include "train/model_input.h"

namespace muster::train {

// What a model has to know of a data set.
ModelInput InputOf(const data::Dataset& dataset, const std::string& loss = "");

// The same memory as tensors, which own it from now on.
Batch ToTensors(data::Batch&& batch);

}  // namespace muster::train
