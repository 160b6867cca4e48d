// What the data looks like to a model, and what follows from it.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace muster::train {

// Shapes are those of one example, without the batch.
struct ModelInput {
  Shape inputs;
  DType inputs_dtype = DType::kFloat32;
  Shape targets;  // [] for one number
  DType targets_dtype = DType::kInt64;
  int64_t classes = 0;     // 0: the targets are no classes
  int64_t vocabulary = 0;  // ids are 0 … vocabulary - 1; 0: unknown
  std::string loss;        // a name for LossByName; "": DefaultLossName
};

bool IsFloating(DType dtype);

// cross_entropy for classes, binary_cross_entropy for two classes given as numbers with a point,
// mse for everything else.
std::string DefaultLossName(const ModelInput& input);

// How many numbers a model has to return for each example: one for each class where the loss is
// cross entropy, otherwise as many as a target has elements.
int64_t OutputsOf(const ModelInput& input);

}  // namespace muster::train
