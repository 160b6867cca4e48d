#include "train/torch/model/export.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "storage/storage.h"
#include "train/torch/model/script_model.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

namespace jit = torch::jit;

class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model) { model_.SetTraining(false); }
  ~EvaluationMode() { model_.SetTraining(true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
};

// Reads an archive in memory, in place.
class MemoryReader : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MemoryReader(const std::string& bytes) : bytes_(bytes) {}

  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t position, void* to, size_t count, const char*) const override {
    if (position >= bytes_.size()) return 0;
    count = std::min<size_t>(count, bytes_.size() - position);
    std::memcpy(to, bytes_.data() + position, count);
    return count;
  }

 private:
  const std::string& bytes_;
};

// Builds a TorchScript module with the tensors of a model under their dotted names.
class ModuleBuilder {
 public:
  ModuleBuilder() : unit_(std::make_shared<jit::CompilationUnit>()), root_(NewModule()) {}

  void Add(const std::string& dotted_name, const at::Tensor& tensor, bool is_buffer) {
    std::vector<std::string> path = absl::StrSplit(dotted_name, '.');
    const std::string name = path.back();
    path.pop_back();
    Find(path).register_parameter(name, tensor, is_buffer);
  }

  const jit::Module& module() const { return root_; }

 private:
  jit::Module NewModule() const {
    jit::Module module(c10::QualifiedName("__torch__.muster.Model"), unit_, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), false);
    return module;
  }

  jit::Module Find(const std::vector<std::string>& path) const {
    jit::Module module = root_;
    for (const std::string& name : path) {
      if (!module.hasattr(name)) module.register_module(name, NewModule());
      module = module.attr(name).toModule();
    }
    return module;
  }

  std::shared_ptr<jit::CompilationUnit> unit_;
  jit::Module root_;
};

// Returns a module whose forward() is the trace of Forward on the example.
jit::Module Trace(Model& model, const at::Tensor& example_inputs) {
  ModuleBuilder builder;
  for (const auto& [name, tensor] : model.Parameters()) builder.Add(name, tensor, false);
  for (const auto& [name, tensor] : model.Buffers()) builder.Add(name, tensor, true);
  jit::Module module = builder.module();
  const auto forward = [&](jit::Stack inputs) -> jit::Stack {
    return {model.Forward(inputs.at(0).toTensor())};
  };
  const auto no_name = [](const at::Tensor&) { return std::string(); };
  const auto traced = jit::tracer::trace({example_inputs}, forward, no_name, /*strict=*/true,
                                         /*force_outplace=*/false, &module, {"inputs"});
  const std::shared_ptr<jit::Graph> graph = traced.first->graph;
  jit::EliminateDeadCode(graph);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), graph));
  return module;
}

// Copies tensors that are views of a larger storage, since torch writes the whole storage of every
// tensor. Everything else is shared with the original.
class Compactor {
 public:
  jit::Module Compact(const jit::Module& module) {
    const auto [known, is_new] = modules_.try_emplace(module._ivalue().get());
    if (!is_new) return known->second;
    jit::Module copy(module._ivalue()->copy());
    known->second = copy;
    for (const auto& attribute : module.named_attributes(/*recurse=*/false)) {
      if (attribute.value.isTensor()) {
        copy._ivalue()->setAttr(attribute.name, Compact(attribute.value.toTensor()));
      } else if (attribute.value.isModule()) {
        copy._ivalue()->setAttr(attribute.name, Compact(attribute.value.toModule())._ivalue());
      }
    }
    return copy;
  }

 private:
  at::Tensor Compact(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() ||
        tensor.nbytes() == tensor.storage().nbytes()) {
      return tensor;
    }
    at::Tensor& copy = tensors_[tensor.unsafeGetTensorImpl()];
    if (!copy.defined()) copy = tensor.detach().clone().set_requires_grad(tensor.requires_grad());
    return copy;
  }

  std::map<const void*, jit::Module> modules_;  // by the original, to preserve sharing
  std::map<const void*, at::Tensor> tensors_;
};

// Serializes to memory, where writing cannot fail: torch terminates the process if the end of an
// archive cannot be written.
std::string Serialize(const jit::Module& module) {
  std::string bytes;
  jit::ExportModule(module, [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  return bytes;
}

bool GivesSameOutputs(Model& model, jit::Module& loaded, const at::Tensor& inputs) {
  const at::Tensor expected = model.Forward(inputs);
  const at::Tensor outputs = loaded.forward({inputs}).toTensor();
  return outputs.sizes() == expected.sizes() &&
         at::allclose(outputs, expected, /*rtol=*/1e-4, /*atol=*/1e-5, /*equal_nan=*/true);
}

absl::StatusOr<ExportedModel> Verify(Model& model, const at::Tensor& example_inputs,
                                     const std::string& bytes) {
  jit::Module loaded;
  bool same = false;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    loaded = jit::load(std::make_shared<MemoryReader>(bytes), at::kCPU);
    same = GivesSameOutputs(model, loaded, example_inputs);
  }));
  if (!same) {
    return absl::InvalidArgumentError(
        "the outputs of the exported model differ from the model's; its forward does something "
        "that a trace cannot capture, such as drawing random numbers");
  }
  ExportedModel exported;
  const absl::Status larger = CatchTorch([&] {
    const at::Tensor inputs = at::cat({example_inputs, example_inputs.narrow(0, 0, 1)});
    exported.any_batch_size = GivesSameOutputs(model, loaded, inputs);
  });
  if (!larger.ok()) exported.any_batch_size = false;
  return exported;
}

absl::StatusOr<ExportedModel> Export(Model& model, const at::Tensor& example_inputs,
                                     const std::string& path) {
  at::NoGradGuard no_grad;
  const EvaluationMode evaluation(model);
  std::string bytes;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    auto* script = dynamic_cast<ScriptModel*>(&model);
    const jit::Module module = script != nullptr ? script->module() : Trace(model, example_inputs);
    bytes = Serialize(Compactor().Compact(module));
  }));
  MUSTER_ASSIGN_OR_RETURN(const ExportedModel exported, Verify(model, example_inputs, bytes));
  MUSTER_RETURN_IF_ERROR(storage::WriteAt(path, bytes));
  return exported;
}

}  // namespace

absl::StatusOr<ExportedModel> ExportTorchScript(Model& model, const torch::Tensor& example_inputs,
                                                const std::string& path) {
  absl::StatusOr<ExportedModel> exported = absl::UnknownError("not exported");
  absl::Status status = CatchTorch([&] { exported = Export(model, example_inputs, path); });
  if (status.ok()) status = exported.status();
  if (!status.ok()) return base::Annotate(status, "cannot export the model as TorchScript");
  return exported;
}

}  // namespace muster::train
