// The graph of a training job for TensorBoard: the operations of the model on the tasks that
// compute them, its variables on the servers that hold them, values and gradients between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes/dtype.h"
#include "summary/event_writer.h"
#include "train/core/optimizer.h"
#include "train/core/placement.h"
#include "train/run/environment.h"

namespace muster::train {

// One operation of a model, recorded in the order of execution.
struct Operation {
  std::string op;                       // "conv2d"
  std::string name = {};                // if it has one of its own: "inputs", "loss"
  std::vector<int> operands = {};       // indices of earlier operations
  std::vector<std::string> reads = {};  // the variables that it reads, by dotted name
  std::optional<base::DType> dtype = {};
  std::optional<base::Shape> shape = {};  // of its output, with the batch
};

struct GraphInput {
  const Environment& environment;
  const std::vector<Variable>& variables;
  const std::vector<ShardPlan>& plans;
  const OptimizerConfig& optimizer;
  // Ends with the loss.
  const std::vector<Operation>& operations;
};

// Returns the nodes of the whole job. An operation is grouped with the module whose variables it
// reads, or with the innermost module around its neighbours. With several training tasks, the
// operations of each are in a group of the task's name; tasks that would make the graph larger than
// a browser can draw are left out.
std::vector<summary::GraphNode> MakeGraph(const GraphInput& input);

// Returns the operations of a model that could not be traced: a loss that reads all variables.
std::vector<Operation> UntracedModel(const std::vector<Variable>& variables);

// Returns the module of each operation, as a path: "layer1/0", or "" for the model itself.
std::vector<std::string> ModulesOf(const std::vector<Operation>& operations);

}  // namespace muster::train
