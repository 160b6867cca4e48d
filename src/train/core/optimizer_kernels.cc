// This file is compiled with -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off in every
// build. Loops are vectorized, and no compiler fuses a multiplication with an addition for one
// instruction set only: results must not depend on the processor.
#include "train/core/optimizer_kernels.h"

#include <algorithm>
#include <cmath>

namespace muster::train {
namespace internal {
namespace {

// Inlined into each kernel below, so that it is compiled once for each instruction set.
#define MUSTER_KERNEL_PART [[gnu::always_inline]] inline

// Asserts that the iterations of the next loop are independent.
#if defined(__clang__)
#define MUSTER_INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define MUSTER_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif

// Calls `rule`(gradient, value, slot0, slot1) -> new value for each element. `rule` updates the
// first kSlots slots through its references.
template <int kSlots, typename RuleFunction>
MUSTER_KERNEL_PART void ForEach(const Coefficients& c, const Block& block, RuleFunction rule) {
  const float scale = c.scale;
  const float l2 = c.l2;
  const float* const gradient = block.gradient;
  const float* const in = block.values_in;
  float* const out = block.values_out;
  float* const first = block.slots[0];
  float* const second = block.slots[1];
  // `in` may equal `out`: each element is read before it is written.
  MUSTER_INDEPENDENT_LOOP
  for (int64_t i = 0; i < block.n; ++i) {
    const float value = in[i];
    float slot0 = kSlots > 0 ? first[i] : 0;
    float slot1 = kSlots > 1 ? second[i] : 0;
    const float g = gradient[i] * scale + l2 * value;
    out[i] = rule(g, value, slot0, slot1);
    if (kSlots > 0) first[i] = slot0;
    if (kSlots > 1) second[i] = slot1;
  }
}

MUSTER_KERNEL_PART void Sgd(const Coefficients& c, const Block& block) {
  ForEach<0>(c, block,
             [rate = c.rate](float g, float value, float&, float&) { return value - rate * g; });
}

template <bool kNesterov>
MUSTER_KERNEL_PART void Momentum(const Coefficients& c, const Block& block) {
  ForEach<1>(c, block,
             [rate = c.rate, momentum = c.momentum](float g, float value, float& buffer, float&) {
               buffer = momentum * buffer + g;
               return value - rate * (kNesterov ? g + momentum * buffer : buffer);
             });
}

MUSTER_KERNEL_PART void Adam(const Coefficients& coefficients, const Block& block) {
  ForEach<2>(coefficients, block,
             [c = coefficients](float g, float value, float& mean, float& mean_square) {
               mean = c.keep1 * mean + c.add1 * g;
               mean_square = c.keep2 * mean_square + c.add2 * g * g;
               const float root = __builtin_sqrtf(mean_square) * c.root_scale + c.epsilon;
               return c.shrink * value - c.rate * mean / root;
             });
}

MUSTER_KERNEL_PART void Adagrad(const Coefficients& c, const Block& block) {
  ForEach<1>(c, block,
             [rate = c.rate, epsilon = c.epsilon](float g, float value, float& sum, float&) {
               sum = sum + g * g;
               return value - rate * g / (__builtin_sqrtf(sum) + epsilon);
             });
}

template <bool kMomentum>
MUSTER_KERNEL_PART void RmsProp(const Coefficients& coefficients, const Block& block) {
  ForEach<kMomentum ? 2 : 1>(
      coefficients, block,
      [c = coefficients](float g, float value, float& mean_square, float& buffer) {
        mean_square = c.keep2 * mean_square + c.add2 * g * g;
        const float root = __builtin_sqrtf(mean_square) + c.epsilon;
        if (!kMomentum) return value - c.rate * g / root;
        buffer = c.momentum * buffer + g / root;
        return value - c.rate * buffer;
      });
}

MUSTER_KERNEL_PART void Run(const Coefficients& c, const Block& block) {
  switch (c.rule) {
    case Rule::kSgd:
      return Sgd(c, block);
    case Rule::kMomentum:
      return Momentum<false>(c, block);
    case Rule::kNesterov:
      return Momentum<true>(c, block);
    case Rule::kAdam:
      return Adam(c, block);
    case Rule::kAdagrad:
      return Adagrad(c, block);
    case Rule::kRmsProp:
      return RmsProp<false>(c, block);
    case Rule::kRmsPropMomentum:
      return RmsProp<true>(c, block);
  }
}

void RunPortable(const Coefficients& c, const Block& block) { Run(c, block); }

#if defined(__x86_64__)
// Memory-bound already: AVX-512 would not be faster.
[[gnu::target("avx2")]] void RunAvx2(const Coefficients& c, const Block& block) { Run(c, block); }
#endif

}  // namespace

std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) kernels.push_back(RunAvx2);
#endif
  kernels.push_back(RunPortable);
  return kernels;
}

namespace {

Rule RuleOf(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerConfig::Kind::kSgd:
      if (config.momentum == 0) return Rule::kSgd;
      return config.nesterov ? Rule::kNesterov : Rule::kMomentum;
    case OptimizerConfig::Kind::kAdam:
    case OptimizerConfig::Kind::kAdamW:
      return Rule::kAdam;
    case OptimizerConfig::Kind::kAdagrad:
      return Rule::kAdagrad;
    case OptimizerConfig::Kind::kRmsProp:
      return config.momentum == 0 ? Rule::kRmsProp : Rule::kRmsPropMomentum;
  }
  return Rule::kSgd;
}

}  // namespace

Coefficients CoefficientsOf(const OptimizerConfig& config, const Update& update) {
  const bool decoupled = config.kind == OptimizerConfig::Kind::kAdamW;
  const double keep2 = config.kind == OptimizerConfig::Kind::kRmsProp ? config.decay : config.beta2;
  Coefficients c = {};
  c.rule = RuleOf(config);
  c.scale = update.scale;
  c.l2 = static_cast<float>(decoupled ? 0 : config.weight_decay);
  c.shrink = static_cast<float>(decoupled ? 1 - update.learning_rate * config.weight_decay : 1);
  c.rate = static_cast<float>(update.learning_rate);
  c.momentum = static_cast<float>(config.momentum);
  c.keep1 = static_cast<float>(config.beta1);
  c.add1 = static_cast<float>(1 - config.beta1);
  c.keep2 = static_cast<float>(keep2);
  c.add2 = static_cast<float>(1 - keep2);
  c.root_scale = 1;
  c.epsilon = static_cast<float>(config.epsilon);
  if (c.rule == Rule::kAdam) {
    // The corrections of Adam's biased means are folded into the rate and the root, in double, once
    // per update. epsilon is added after the correction, as in PyTorch.
    const auto step = static_cast<double>(update.step);
    c.rate = static_cast<float>(update.learning_rate / (1 - std::pow(config.beta1, step)));
    c.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(config.beta2, step)));
  }
  return c;
}

namespace {

Kernel BestKernel() {
  static const Kernel kBest = Kernels().front();
  return kBest;
}

// Scratch memory to sum the gradients of a block.
struct Room {
  float sum[Gradient::kMaxElements];
  float a[Gradient::kMaxElements];
  float b[Gradient::kMaxElements];
};

// Returns the next `n` elements of the sum. Reads two gradients at a time, since concurrent streams
// use more of the memory bandwidth; the order of additions stays that of the tasks.
const float* Sum(absl::Span<Gradient* const> gradients, int64_t n, Room& room) {
  const float* a = gradients[0]->Next(n, room.a);
  if (gradients.size() == 1) return a;
  const float* b = gradients[1]->Next(n, room.b);
  float* const sum = room.sum;
  for (int64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
  size_t next = 2;
  for (; next + 1 < gradients.size(); next += 2) {
    a = gradients[next]->Next(n, room.a);
    b = gradients[next + 1]->Next(n, room.b);
    for (int64_t i = 0; i < n; ++i) sum[i] = (sum[i] + a[i]) + b[i];
  }
  if (next == gradients.size()) return sum;
  a = gradients[next]->Next(n, room.a);
  for (int64_t i = 0; i < n; ++i) sum[i] += a[i];
  return sum;
}

}  // namespace
}  // namespace internal

void Apply(const OptimizerConfig& config, const Update& update,
           absl::Span<Gradient* const> gradients, const float* values_in, float* values_out,
           float* const slots[kMaxSlots], int64_t n) {
  const internal::Coefficients coefficients = internal::CoefficientsOf(config, update);
  const internal::Kernel kernel = internal::BestKernel();
  const size_t slot_count = SlotNames(config).size();
  internal::Room room;
  for (int64_t begin = 0; begin < n; begin += Gradient::kMaxElements) {
    const int64_t size = std::min(Gradient::kMaxElements, n - begin);
    internal::Block block = {
        internal::Sum(gradients, size, room), values_in + begin, values_out + begin, {}, size};
    for (size_t i = 0; i < slot_count; ++i) block.slots[i] = slots[i] + begin;
    kernel(coefficients, block);
  }
}

void Apply(const OptimizerConfig& config, const Update& update,
           absl::Span<const float* const> gradients, const float* values_in, float* values_out,
           float* const slots[kMaxSlots], int64_t n) {
  std::vector<FlatGradient> flat(gradients.begin(), gradients.end());
  std::vector<Gradient*> pointers;
  pointers.reserve(flat.size());
  for (FlatGradient& gradient : flat) pointers.push_back(&gradient);
  Apply(config, update, pointers, values_in, values_out, slots, n);
}

void ApplyRows(const OptimizerConfig& config, const Update& update, const float* gradients,
               absl::Span<const int64_t> rows, int64_t width, float* values,
               float* const slots[kMaxSlots]) {
  const internal::Coefficients coefficients = internal::CoefficientsOf(config, update);
  const internal::Kernel kernel = internal::BestKernel();
  const size_t slot_count = SlotNames(config).size();
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t begin = rows[row] * width;
    internal::Block block = {
        gradients + static_cast<int64_t>(row) * width, values + begin, values + begin, {}, width};
    for (size_t i = 0; i < slot_count; ++i) block.slots[i] = slots[i] + begin;
    kernel(coefficients, block);
  }
}

}  // namespace muster::train
