// For tests: a model with synthetic gradients, trained by one serial loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "train/core/optimizer.h"
#include "train/core/placement.h"

namespace muster::train {

// Dense variables that are split, shared, scalar and empty; tables small and split; buffers.
std::vector<Variable> AllKinds();
std::vector<Variable> DenseOnly();

// All values and slots of the variables.
struct ModelState {
  std::vector<std::vector<float>> values;    // by variable; empty for buffers
  std::vector<std::vector<float>> slots[2];  // by variable
  std::vector<std::vector<std::byte>> buffers;

  friend bool operator==(const ModelState&, const ModelState&) = default;
};
ModelState FirstState(const std::vector<Variable>& variables, int slots);

// The synthetic results of a task for its `batch`-th batch.
float GradientOf(int rank, int64_t batch, int64_t element, float value);
std::vector<int64_t> RowsOf(int rank, int64_t batch, int64_t rows);  // sorted
std::vector<std::byte> BuffersOf(int64_t batch, int64_t bytes);
// Rounds `values` as sending them in `precision` does.
void Round(wire::Frame::Precision precision, std::vector<float>& values);

// Serial training, without servers: the reference result.
struct Serial {
  std::vector<Variable> variables;
  OptimizerConfig optimizer;
  wire::Frame::Precision precision = wire::Frame::FLOAT32;
  ModelState state;

  // Computes step `step`, counted from 0, with the gradients of these tasks.
  void Step(int64_t step, const std::set<int>& ranks);

 private:
  void StepDense(int variable, int64_t step, const std::set<int>& ranks);
  void StepTable(int variable, int64_t step, const std::set<int>& ranks);
};

}  // namespace muster::train
