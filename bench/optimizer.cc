// The optimizers' update of a 100 MB variable beside a loop that reads and writes the same streams
// and computes almost nothing: shows how close an update is to memory bandwidth. Prints one line
// each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "timing.h"
#include "train/core/optimizer_kernels.h"

namespace {

using muster::bench::Median;
using muster::bench::SecondsOf;
using muster::train::Apply;
using muster::train::OptimizerConfig;
using muster::train::Update;

constexpr int64_t kSize = 25'000'000;  // floats
constexpr int kRounds = 15;

using Stream = std::vector<float>;

// Reads all of `read` and of `updated`, and writes `updated`, up to three each.
template <int kRead, int kUpdated>
void Triad(const std::vector<Stream>& read, std::vector<Stream>& updated) {
  const float* in[kRead];
  float* out[kUpdated];
  for (int k = 0; k < kRead; ++k) in[k] = read[k].data();
  for (int k = 0; k < kUpdated; ++k) out[k] = updated[k].data();
#pragma GCC ivdep
  for (int64_t i = 0; i < kSize; ++i) {
    float sum = in[0][i];
    for (int k = 1; k < kRead; ++k) sum += in[k][i];
    for (int k = 0; k < kUpdated; ++k) out[k][i] = 0.999F * out[k][i] + 0.001F * sum;
  }
}

template <int kGradients, int kSlots>
void Compare(const char* name, OptimizerConfig::Kind kind, double momentum = 0) {
  OptimizerConfig config;
  config.kind = kind;
  config.momentum = momentum;
  std::vector<Stream> gradients(kGradients, Stream(kSize, 0.001F));
  std::vector<Stream> state(1 + kSlots, Stream(kSize, 0.1F));
  std::vector<const float*> pointers;
  for (const Stream& gradient : gradients) pointers.push_back(gradient.data());
  float* slots[muster::train::kMaxSlots] = {};
  for (int i = 0; i < kSlots; ++i) slots[i] = state[1 + i].data();
  const Update update{.learning_rate = 0.001, .step = 10, .scale = 1.0F / kGradients};

  std::vector<double> ours;
  std::vector<double> bound;
  for (int round = 0; round < kRounds; ++round) {
    bound.push_back(SecondsOf([&] { Triad<kGradients, 1 + kSlots>(gradients, state); }));
    ours.push_back(SecondsOf(
        [&] { Apply(config, update, pointers, state[0].data(), state[0].data(), slots, kSize); }));
  }
  const double bytes = static_cast<double>(kSize) * sizeof(float) * (kGradients + 2 * (1 + kSlots));
  const double seconds = Median(ours);
  const double best = Median(bound);
  std::printf("%-34s %6.1f ms  %5.1f GB/s / %5.1f GB/s = %.2f\n", name, seconds * 1e3,
              bytes / seconds / 1e9, bytes / best / 1e9, best / seconds);
}

}  // namespace

int main() {
  using Kind = OptimizerConfig::Kind;
  std::printf("one update of a 100 MB variable                  speed / of a bare loop\n");
  Compare<1, 2>("adam, 1 gradient", Kind::kAdam);
  Compare<2, 2>("adam, mean of 2 gradients", Kind::kAdam);
  Compare<4, 2>("adam, mean of 4 gradients", Kind::kAdam);
  Compare<1, 0>("sgd, 1 gradient", Kind::kSgd);
  Compare<2, 1>("sgd with momentum, mean of 2", Kind::kSgd, 0.9);
  Compare<1, 1>("adagrad, 1 gradient", Kind::kAdagrad);
  Compare<1, 2>("rmsprop with momentum, 1 gradient", Kind::kRmsProp, 0.9);
}
