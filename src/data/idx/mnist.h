// MNIST and other data sets of IDX files.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/open.h"

namespace muster::data {

// Opens the four files of MNIST in config.path: {train,t10k}-images-idx3-ubyte and
// …-labels-idx1-ubyte, plain or with .gz. Inputs are float32 [1, 28, 28], normalized to mean 0 and
// deviation 1 over the training images; targets are int64 [], 10 classes. The splits are train and
// test.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenMnist(const DataConfig& config);

// Opens any pair of IDX files in config.path: SPLIT-images.idx and SPLIT-labels.idx, or named like
// MNIST's; plain or with .gz. Bytes become float32 from 0 to 1.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdx(const DataConfig& config);

}  // namespace muster::data
