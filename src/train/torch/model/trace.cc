#include "train/torch/model/trace.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

namespace jit = torch::jit;

template <typename T>
void AddNew(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

// "conv2d", without the underscores of operations that work in place or are internal to torch.
std::string OpName(const jit::Node& node) {
  const absl::string_view name = node.kind().toUnqualString();
  return std::string(absl::StripPrefix(absl::StripSuffix(name, "_"), "_"));
}

// Converts a trace whose inputs are tensors with names. Nodes of the interpreter (constants, lists,
// tuples) and nodes that compute numbers are left out: their users get what they were made of.
class Converter {
 public:
  // `placeholders` of the first inputs are operations, the others are variables.
  Converter(const jit::Graph& graph, const std::vector<std::string>& names, size_t placeholders) {
    for (size_t i = 0; i < names.size(); ++i) {
      const jit::Value* value = graph.inputs()[i];
      if (i < placeholders) {
        AddOperation({.op = "Placeholder", .name = names[i]}, {value}, value);
      } else {
        sources_[value].variables = {names[i]};
      }
    }
    for (const jit::Node* node : graph.nodes()) AddNode(*node);
    AddLoss(*graph.outputs()[0]);
  }

  std::vector<Operation> TakeOperations() { return std::move(operations_); }

 private:
  struct Sources {
    std::vector<int> operations;
    std::vector<std::string> variables;
  };

  Sources SourcesOf(at::ArrayRef<const jit::Value*> values) const {
    Sources all;
    for (const jit::Value* value : values) {
      const auto found = sources_.find(value);
      if (found == sources_.end()) continue;
      for (const int operation : found->second.operations) AddNew(all.operations, operation);
      for (const std::string& variable : found->second.variables) AddNew(all.variables, variable);
    }
    return all;
  }

  void AddNode(const jit::Node& node) {
    const Sources inputs = SourcesOf(node.inputs());
    const bool computes = !node.kind().is_prim() && !node.outputs().empty() &&
                          node.outputs()[0]->type()->isSubtypeOf(*c10::TensorType::get());
    if (!computes) {
      for (const jit::Value* output : node.outputs()) sources_[output] = inputs;
      return;
    }
    AddOperation({.op = OpName(node), .operands = inputs.operations, .reads = inputs.variables},
                 node.outputs(), node.outputs()[0]);
  }

  void AddLoss(const jit::Value& value) {
    const Sources inputs = SourcesOf({&value});
    AddOperation({.op = "Identity",
                  .name = "loss",
                  .operands = inputs.operations,
                  .reads = inputs.variables},
                 {}, &value);
  }

  // `result` has the shape and type of the output.
  void AddOperation(Operation operation, at::ArrayRef<const jit::Value*> outputs,
                    const jit::Value* result) {
    if (const auto type = result->type()->cast<c10::TensorType>()) {
      if (const auto sizes = type->sizes().concrete_sizes()) operation.shape = *sizes;
      if (const auto scalar = type->scalarType()) {
        if (const auto dtype = DTypeOf(*scalar); dtype.ok()) operation.dtype = *dtype;
      }
    }
    for (const jit::Value* output : outputs) {
      sources_[output].operations = {static_cast<int>(operations_.size())};
    }
    operations_.push_back(std::move(operation));
  }

  std::map<const jit::Value*, Sources> sources_;
  std::vector<Operation> operations_;
};

at::Tensor Zeros(int64_t batch_size, const base::Shape& example, base::DType dtype) {
  base::Shape shape = {batch_size};
  shape.insert(shape.end(), example.begin(), example.end());
  return at::zeros(shape, ScalarTypeOf(dtype));
}

std::vector<Operation> Trace(Model& model, const ModelInput& input, const Loss& loss,
                             int64_t batch_size) {
  at::NoGradGuard no_grad;
  jit::Stack tensors = {Zeros(batch_size, input.inputs, input.inputs_dtype),
                        Zeros(batch_size, input.targets, input.targets_dtype)};
  std::vector<std::string> names = {"inputs", "targets"};
  // The model's tensors are inputs as well, so that the trace refers to them instead of copies.
  for (const NamedTensors& variables : {model.Parameters(), model.Buffers()}) {
    for (const auto& [name, tensor] : variables) {
      tensors.emplace_back(tensor);
      names.push_back(name);
    }
  }
  const auto step = [&](jit::Stack inputs) -> jit::Stack {
    const jit::tracer::NoWarn no_warnings;
    const Batch batch{.inputs = inputs.at(0).toTensor(), .targets = inputs.at(1).toTensor()};
    return {loss(model.Forward(batch.inputs), batch)};
  };
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  const auto traced = jit::tracer::trace(std::move(tensors), step, no_name);
  const std::shared_ptr<jit::Graph> graph = traced.first->graph;
  jit::EliminateDeadCode(graph);
  return Converter(*graph, names, 2).TakeOperations();
}

}  // namespace

absl::StatusOr<std::vector<Operation>> TraceModel(Model& model, const ModelInput& input,
                                                  const Loss& loss, int64_t batch_size) {
  std::vector<Operation> operations;
  const absl::Status traced = CatchTorch([&] {
    model.SetTraining(false);
    operations = Trace(model, input, loss, batch_size);
  });
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] { model.SetTraining(true); }));
  if (!traced.ok()) return traced;
  return operations;
}

}  // namespace muster::train
