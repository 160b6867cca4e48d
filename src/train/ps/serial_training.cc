#include "train/ps/serial_training.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "train/core/half.h"
#include "train/core/optimizer_kernels.h"

namespace muster::train {
namespace {

using Kind = Variable::Kind;
using wire::Frame;

uint32_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<uint32_t>(x >> 32);
}

// Returns a number in [-1, 1].
float Noise(uint64_t seed) { return static_cast<float>(Mix(seed) % 20001) / 10000.0F - 1.0F; }

}  // namespace

std::vector<Variable> AllKinds() {
  const auto dense = [](std::string name, base::Shape shape) {
    return Variable{{std::move(name), base::DType::kFloat32, std::move(shape)}, Kind::kDense};
  };
  return {dense("first", {300, 70}),
          dense("bias", {70}),
          {{"table", base::DType::kFloat32, {50, 8}}, Kind::kTable},
          dense("scalar", {}),
          {{"mean", base::DType::kFloat32, {16}}, Kind::kBuffer},
          dense("empty", {0, 5}),
          {{"large_table", base::DType::kFloat32, {3000, 8}}, Kind::kTable},
          dense("last", {64, 33}),
          {{"count", base::DType::kInt64, {}}, Kind::kBuffer}};
}

std::vector<Variable> DenseOnly() {
  return {{{"weight", base::DType::kFloat32, {100, 80}}, Kind::kDense},
          {{"bias", base::DType::kFloat32, {80}}, Kind::kDense}};
}

float GradientOf(int rank, int64_t batch, int64_t element, float value) {
  const auto seed = static_cast<uint64_t>((rank + 1) * 1'000'003 + batch * 7'919) * 1'000'003;
  return Noise(seed + static_cast<uint64_t>(element)) + 0.125F * value;
}

std::vector<int64_t> RowsOf(int rank, int64_t batch, int64_t rows) {
  std::set<int64_t> chosen;
  for (uint64_t i = 0; i < 20; ++i) {
    chosen.insert(Mix(static_cast<uint64_t>(rank * 31 + batch * 1013) * 64 + i) % rows);
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<std::byte> BuffersOf(int64_t batch, int64_t bytes) {
  std::vector<std::byte> result(static_cast<size_t>(bytes));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::byte>(Mix(static_cast<uint64_t>(batch) * 977 + i));
  }
  return result;
}

void Round(Frame::Precision precision, std::vector<float>& values) {
  const auto n = static_cast<int64_t>(values.size());
  std::vector<uint16_t> half(values.size());
  if (precision == Frame::FLOAT16) {
    ToFloat16(values.data(), half.data(), n);
    FromFloat16(half.data(), values.data(), n);
  } else if (precision == Frame::BFLOAT16) {
    ToBfloat16(values.data(), half.data(), n);
    FromBfloat16(half.data(), values.data(), n);
  }
}

ModelState FirstState(const std::vector<Variable>& variables, int slots) {
  ModelState state;
  for (size_t v = 0; v < variables.size(); ++v) {
    const bool is_buffer = variables[v].kind == Kind::kBuffer;
    const auto elements = static_cast<size_t>(base::ElementsOf(variables[v].spec.shape));
    std::vector<float> values(is_buffer ? 0 : elements);
    for (size_t i = 0; i < values.size(); ++i) values[i] = Noise(v * 1'000'000 + i);
    for (int slot = 0; slot < 2; ++slot) {
      state.slots[slot].emplace_back(slot < slots ? values.size() : 0);
      std::vector<float>& made = state.slots[slot].back();
      for (size_t i = 0; i < made.size(); ++i) made[i] = 0.01F + 0.01F * std::abs(values[i]);
    }
    state.values.push_back(std::move(values));
    state.buffers.push_back(is_buffer ? BuffersOf(-1, variables[v].spec.bytes())
                                      : std::vector<std::byte>());
  }
  return state;
}

void Serial::StepDense(int variable, int64_t step, const std::set<int>& ranks) {
  std::vector<float>& values = state.values[variable];
  std::vector<std::vector<float>> gradients;
  std::vector<const float*> pointers;
  for (const int rank : ranks) {
    std::vector<float> gradient(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      gradient[i] = GradientOf(rank, step, static_cast<int64_t>(i), values[i]);
    }
    Round(precision, gradient);
    gradients.push_back(std::move(gradient));
  }
  pointers.reserve(gradients.size());
  for (const auto& gradient : gradients) pointers.push_back(gradient.data());
  if (pointers.empty()) return;
  float* const slots[kMaxSlots] = {state.slots[0][variable].data(),
                                   state.slots[1][variable].data()};
  Apply(optimizer, {optimizer.learning_rate, step + 1, 1.0F / static_cast<float>(ranks.size())},
        pointers, values.data(), values.data(), slots, static_cast<int64_t>(values.size()));
}

void Serial::StepTable(int variable, int64_t step, const std::set<int>& ranks) {
  std::vector<float>& values = state.values[variable];
  const int64_t count = variables[variable].spec.shape[0];
  const int64_t width = variables[variable].spec.shape[1];
  std::map<int64_t, std::vector<float>> sums;
  for (const int rank : ranks) {
    for (const int64_t row : RowsOf(rank, step, count)) {
      std::vector<float> gradient(static_cast<size_t>(width));
      for (int64_t i = 0; i < width; ++i) {
        const int64_t element = row * width + i;
        gradient[i] = GradientOf(rank, step, element, values[element]);
      }
      Round(precision, gradient);
      auto [sum, is_new] = sums.try_emplace(row, gradient);
      if (is_new) continue;
      for (int64_t i = 0; i < width; ++i) sum->second[i] += gradient[i];
    }
  }
  std::vector<int64_t> rows;
  std::vector<float> flat;
  for (const auto& [row, sum] : sums) {
    rows.push_back(row);
    flat.insert(flat.end(), sum.begin(), sum.end());
  }
  if (rows.empty()) return;
  float* const slots[kMaxSlots] = {state.slots[0][variable].data(),
                                   state.slots[1][variable].data()};
  ApplyRows(optimizer, {optimizer.learning_rate, step + 1, 1.0F / static_cast<float>(ranks.size())},
            flat.data(), rows, width, values.data(), slots);
}

void Serial::Step(int64_t step, const std::set<int>& ranks) {
  for (size_t v = 0; v < variables.size(); ++v) {
    const int variable = static_cast<int>(v);
    if (variables[v].kind == Kind::kDense) StepDense(variable, step, ranks);
    if (variables[v].kind == Kind::kTable) StepTable(variable, step, ranks);
  }
  int64_t bytes = 0;
  for (const auto& buffer : state.buffers) bytes += static_cast<int64_t>(buffer.size());
  const std::vector<std::byte> packed = BuffersOf(step, bytes);
  auto from = packed.begin();
  for (auto& buffer : state.buffers) {
    std::copy_n(from, buffer.size(), buffer.begin());
    from += static_cast<int64_t>(buffer.size());
  }
}

}  // namespace muster::train
