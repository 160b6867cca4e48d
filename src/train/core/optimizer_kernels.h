// The optimizers' arithmetic, at memory bandwidth.
//
// Each element is computed from its own inputs by the same sequence of IEEE operations, whatever
// the processor, the alignment and the split of a variable into calls, so results are identical bit
// for bit. Pointers need only the alignment of a float.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "train/core/optimizer.h"

namespace muster::train {

struct Update {
  double learning_rate = 0;  // of this step; the configuration's is ignored
  int64_t step = 1;          // number of this update of the variable, from 1
  float scale = 1;           // factor of the sum of the gradients
};

// One task's gradient, read once, from beginning to end.
class Gradient {
 public:
  // This many elements stay in the L1 cache until they are used.
  static constexpr int64_t kMaxElements = 1024;

  virtual ~Gradient() = default;
  // Returns the next `n` elements, either in place or copied to `room`.
  // REQUIRES: n <= kMaxElements; `room` has space for `n` elements.
  virtual const float* Next(int64_t n, float* room) = 0;
};

class FlatGradient final : public Gradient {
 public:
  explicit FlatGradient(const float* data) : data_(data) {}
  const float* Next(int64_t n, float* /*room*/) override { return std::exchange(data_, data_ + n); }

 private:
  const float* data_;
};

// Updates `n` consecutive elements with (gradients[0] + gradients[1] + …) · scale, added in that
// order. `slots` are those of SlotNames(); further pointers are ignored.
// REQUIRES: `gradients` is not empty; `values_out` equals `values_in` or does not overlap it.
void Apply(const OptimizerConfig& config, const Update& update,
           absl::Span<Gradient* const> gradients, const float* values_in, float* values_out,
           float* const slots[kMaxSlots], int64_t n);
void Apply(const OptimizerConfig& config, const Update& update,
           absl::Span<const float* const> gradients, const float* values_in, float* values_out,
           float* const slots[kMaxSlots], int64_t n);

// Updates selected rows of a table [rows, width] in place: row rows[i] with row i of `gradients`
// times scale. Other rows and their slots keep their values.
// REQUIRES: each of `rows` is in the table.
void ApplyRows(const OptimizerConfig& config, const Update& update, const float* gradients,
               absl::Span<const int64_t> rows, int64_t width, float* values,
               float* const slots[kMaxSlots]);

namespace internal {

enum class Rule { kSgd, kMomentum, kNesterov, kAdam, kAdagrad, kRmsProp, kRmsPropMomentum };

// The constants of one update, shared by all elements.
struct Coefficients {
  Rule rule;
  float scale;
  float l2;      // factor of the value that is added to the gradient
  float shrink;  // factor of the value before the update
  float rate;    // the learning rate; adam: corrected for the bias of exp_avg
  float momentum;
  float keep1, add1;  // of the first mean: keep1 · old + add1 · new
  float keep2, add2;  // of the mean square
  float root_scale;   // adam: corrects exp_avg_sq's root for its bias
  float epsilon;
};
Coefficients CoefficientsOf(const OptimizerConfig& config, const Update& update);

struct Block {
  const float* gradient;
  const float* values_in;
  float* values_out;
  float* slots[kMaxSlots];
  int64_t n;
};

// Returns one kernel for each instruction set that this processor supports, fastest first.
using Kernel = void (*)(const Coefficients&, const Block&);
std::vector<Kernel> Kernels();

}  // namespace internal
}  // namespace muster::train
