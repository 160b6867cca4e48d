// The optimizers' arithmetic, at the speed of memory.
//
// Every element's new value is computed from its own inputs by the same sequence of IEEE
// operations, whatever the processor, the alignment and the way a variable is cut into calls:
// results are identical, bit for bit. Pointers need the alignment of a float, no more.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "train/optimizer.h"

namespace muster::train {

struct Update {
  double learning_rate = 0;  // of this step; that of the configuration is not looked at
  int64_t step = 1;          // which update of the variable this is, counted from 1
  float scale = 1;           // what the sum of the gradients is multiplied with
};

// One task's gradient, read once from its beginning to its end.
class Gradient {
 public:
  // So many elements stay in the first-level cache until they are used.
  static constexpr int64_t kMost = 1024;

  virtual ~Gradient() = default;
  // The next `n` elements, at most kMost: where they are, or in `room`, which has space for them.
  virtual const float* Next(int64_t n, float* room) = 0;
};

class FlatGradient final : public Gradient {
 public:
  explicit FlatGradient(const float* data) : data_(data) {}
  const float* Next(int64_t n, float* /*room*/) override { return std::exchange(data_, data_ + n); }

 private:
  const float* data_;
};

// Updates `n` consecutive elements with (gradients[0] + gradients[1] + …) · scale, added up in that
// order; there is at least one. `values_out` is `values_in` or does not overlap it. `slots` are
// those of SlotNames(); the pointers beyond are not looked at.
void Apply(const OptimizerConfig& config, const Update& update,
           absl::Span<Gradient* const> gradients, const float* values_in, float* values_out,
           float* const slots[kMaxSlots], int64_t n);
void Apply(const OptimizerConfig& config, const Update& update,
           absl::Span<const float* const> gradients, const float* values_in, float* values_out,
           float* const slots[kMaxSlots], int64_t n);

// The same for chosen rows of a table [rows, width], in place: row rows[i] is updated with row i of
// `gradients` times scale. Other rows and their slots stay as they are. Each of `rows` must be in
// the table.
void ApplyRows(const OptimizerConfig& config, const Update& update, const float* gradients,
               absl::Span<const int64_t> rows, int64_t width, float* values,
               float* const slots[kMaxSlots]);

namespace internal {

enum class Rule { kSgd, kMomentum, kNesterov, kAdam, kAdagrad, kRmsProp, kRmsPropMomentum };

// All that is the same for every element.
struct Coefficients {
  Rule rule;
  float scale;
  float l2;      // how much of the value is added to the gradient
  float shrink;  // what the value is multiplied with before it is updated
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

// One kernel for each set of instructions that this processor has, the best first.
using Kernel = void (*)(const Coefficients&, const Block&);
std::vector<Kernel> Kernels();

}  // namespace internal
}  // namespace muster::train
