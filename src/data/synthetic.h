// Generated data sets: nothing to download, the same on every machine, and learnable.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/open.h"

namespace muster::data {

// The kinds, with their keys and defaults:
//   images    shape [1, 28, 28], classes 10: each class has a coarse pattern, under noise
//   tabular   features 16, classes 0: float32 [features]; the target is float32 [1], linear in them
//             with a little noise, or with classes 2 and more, the one with the highest linear
//             score
//   tokens    length 16, vocabulary 1000, classes 2: int64 [length]; half of the ids are such that
//             id % classes is the target, the others any
//   sequence  length 32, features 8, classes 6: float32 [length, features]; the target is int64
//             [length / 4], from 1 on and padded with 0, the blank of CTC. Each symbol lasts three
//             frames, followed by one frame of noise
//
// There are 10000 examples unless config.examples is set. The split test has a fifth of that, from
// the same distribution, and shares no example with train.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenSynthetic(const DataConfig& config);

}  // namespace muster::data
