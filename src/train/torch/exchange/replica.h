// A model whose dense parameters are in flat memory, so that values are received and gradients sent
// without copies. Not thread-safe, except Next() for distinct elements.
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
#include "train/core/flat_memory.h"
#include "train/core/placement.h"

namespace muster::train {

class Replica {
 public:
  // `tables`: the parameters with sparse gradients. Returns InvalidArgument if a parameter is not
  // float32. `model` must outlive the replica.
  static absl::StatusOr<std::unique_ptr<Replica>> Create(Model& model,
                                                         const std::set<std::string>& tables);
  ~Replica();

  // Returns the parameters in the order of definition, then the buffers. The index of a variable is
  // its number.
  const std::vector<Variable>& variables() const { return variables_; }
  int parameter_count() const { return parameter_count_; }
  Model& model() { return model_; }

  // Moves the dense parameters into double-buffered memory: the active values, and the next.
  void UseOwnMemory();
  // Moves them to the memory that `place` returns, permanently. The model takes the values there.
  void UseMemory(const std::function<float*(int variable)>& place);

  // Returns the memory of element `first` of a dense parameter's next value.
  float* Next(int variable, int64_t first);
  // Makes the next values active.
  void Advance();

  torch::Tensor Tensor(int variable) const { return tensors_[variable]; }
  // Returns the contiguous gradient, or an undefined tensor if there is none. Only a table's may be
  // sparse; that of another parameter is made dense, since all of it is sent.
  torch::Tensor Gradient(int variable) const;
  // Replaces the gradient by zeros.
  void ZeroGradient(int variable);
  void ClearGradients();

  // Returns a variable's bytes; makes it contiguous first.
  absl::Span<const std::byte> Bytes(int variable) const;
  // Returns all buffers, concatenated.
  std::shared_ptr<std::vector<std::byte>> PackBuffers() const;
  // Returns whether PackBuffers() would return these bytes.
  bool BuffersAre(absl::Span<const std::byte> bytes) const;
  // Sets all buffers. REQUIRES: `bytes` has the size of PackBuffers().
  void UnpackBuffers(absl::Span<const std::byte> bytes);

  // Calls `ready` from backward when a parameter's gradient is complete.
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
