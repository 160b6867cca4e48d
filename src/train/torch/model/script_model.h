// A model that was written in Python and saved as TorchScript, trained here without Python.
//
// Such a file is a program: load only files that you trust.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/train.h"

namespace muster::train {

class ScriptModel : public Model {
 public:
  explicit ScriptModel(torch::jit::Module module) : module_(std::move(module)) {}

  torch::Tensor Forward(const torch::Tensor& inputs) override;
  NamedTensors Parameters() override;
  // Parameters that Python had frozen (requires_grad = False) belong here.
  NamedTensors Buffers() override;
  void SetTraining(bool on) override { module_.train(on); }

  torch::jit::Module& module() { return module_; }

 private:
  torch::jit::Module module_;
};

// Returns NotFound if there is no such file; InvalidArgument, with the remedy in Python, if it is
// not a TorchScript module with `forward(Tensor) -> Tensor` and parameters to train.
absl::StatusOr<std::unique_ptr<Model>> LoadScriptModel(const std::string& path);

}  // namespace muster::train
