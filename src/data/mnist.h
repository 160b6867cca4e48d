// MNIST and data sets that are kept like it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/open.h"

namespace muster::data {

// The four files of MNIST in config.path: {train,t10k}-images-idx3-ubyte, …-labels-idx1-ubyte,
// plain or with .gz. Inputs float32 [1, 28, 28], normalised to mean 0 and deviation 1 over the
// training images; targets int64 [], 10 classes. Split train or test.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenMnist(const DataConfig& config);

// Any pair of IDX files in config.path: SPLIT-images.idx and SPLIT-labels.idx, or named as MNIST's
// are; plain or with .gz. Bytes become float32 from 0 to 1.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdx(const DataConfig& config);

}  // namespace muster::data
