// Data sets made from a formula: nothing to download, the same on every machine, and learnable.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/open.h"

namespace muster::data {

// The kinds, the keys each takes and what they are when absent:
//   images    shape [1, 28, 28], classes 10: each class has a coarse pattern, under noise
//   tabular   features 16, classes 0: float32 [features]; the target is float32 [1], linear in them
//             with a little noise, or with classes 2 and more, the one with the highest linear
//             score
//   tokens    length 16, vocabulary 1000, classes 2: int64 [length]; half of the ids are such that
//             id % classes is the target, the others any
//   sequence  length 32, features 8, classes 6: float32 [length, features]; the target is int64
//             [length / 4], from 1 on and filled up with 0, the blank of CTC. Each symbol sounds
//             for three frames, then there is one frame of noise
//
// 10000 examples unless config.examples says otherwise; the split test has a fifth of that, of the
// same distribution and with none of the training's.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenSynthetic(const DataConfig& config);

}  // namespace muster::data
