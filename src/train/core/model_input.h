// The shape and type of the data that a model trains on, and the defaults derived from them.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes/dtype.h"

namespace muster::train {

// Shapes are those of one example, without the batch dimension.
struct ModelInput {
  base::Shape inputs;
  base::DType inputs_dtype = base::DType::kFloat32;
  base::Shape targets;  // [] for a scalar
  base::DType targets_dtype = base::DType::kInt64;
  int64_t classes = 0;     // 0: the targets are not classes
  int64_t vocabulary = 0;  // ids are 0 … vocabulary - 1; 0: unknown
  std::string loss;        // a name for LossByName; "": DefaultLossName
};

bool IsFloating(base::DType dtype);

// Returns cross_entropy for classes, binary_cross_entropy for two classes given as floating-point
// targets, else mse.
std::string DefaultLossName(const ModelInput& input);

// Returns how many outputs a model must have per example: one for each class if the loss is
// cross_entropy, else one for each element of a target.
int64_t OutputsOf(const ModelInput& input);

}  // namespace muster::train
