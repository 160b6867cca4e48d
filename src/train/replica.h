// A model whose dense parameters lie in flat memory, so that values arrive and gradients leave
// without copies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/train.h"
#include "train/flat_memory.h"
#include "train/placement.h"

namespace muster::train {

class Replica {
 public:
  // `tables`: the parameters that get sparse gradients. Parameters must be float32.
  static absl::StatusOr<std::unique_ptr<Replica>> Create(Model& model,
                                                         const std::set<std::string>& tables);
  ~Replica();

  // The parameters in the order of definition, then the buffers. A variable's number is its place.
  const std::vector<Variable>& variables() const { return variables_; }
  int parameter_count() const { return parameter_count_; }
  Model& model() { return model_; }

  // Lets the dense parameters live in two memories by turns: those in use, and the next.
  void UseOwnMemory();
  // Lets them live where `place` says, for good; the values there are the model's from now on.
  void UseMemory(const std::function<float*(int variable)>& place);

  // Where element `first` of a dense parameter's next value belongs.
  float* Next(int variable, int64_t first);
  // The next values become those in use.
  void Advance();

  torch::Tensor Tensor(int variable) const { return tensors_[variable]; }
  // The gradient, contiguous; undefined when the parameter got none. Sparse of a table only: that
  // of another parameter is made dense, since all of it is sent.
  torch::Tensor Gradient(int variable) const;
  // As if the parameter got none that counts.
  void ZeroGradient(int variable);
  void ClearGradients();

  // A variable's bytes, for the first values.
  absl::Span<const std::byte> Bytes(int variable) const;
  // All buffers, one after the other.
  std::shared_ptr<std::vector<std::byte>> PackBuffers() const;
  // Whether PackBuffers() would give these bytes.
  bool BuffersAre(absl::Span<const std::byte> bytes) const;
  // As many bytes as PackBuffers() makes.
  void UnpackBuffers(absl::Span<const std::byte> bytes);

  // Calls `ready` in backward whenever a parameter's gradient is complete.
  void OnGradient(std::function<void(int variable)> ready);

 private:
  explicit Replica(Model& model) : model_(model) {}
  torch::Tensor View(float* data, int variable) const;

  Model& model_;
  std::vector<Variable> variables_;
  std::vector<torch::Tensor> tensors_;
  int parameter_count_ = 0;
  FlatMemory memory_[2];
  int active_ = 0;
  std::vector<int64_t> offsets_;                     // of dense parameters, in elements
  std::vector<torch::Tensor> views_[2];              // by variable
  std::vector<std::shared_ptr<void>> accumulators_;  // keep the hooks alive
};

}  // namespace muster::train
