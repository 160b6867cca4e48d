#include "data/synthetic_kinds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/input/random.h"

namespace muster::data {
namespace {

// Keys of the parameters that all examples of a kind share.
constexpr uint64_t kPatternKey = 1;
constexpr uint64_t kWeightKey = 2;
constexpr uint64_t kSymbolKey = 3;

constexpr int64_t kCell = 4;  // a pattern has one value per block of kCell rows and columns
constexpr float kTargetNoise = 0.1f;
constexpr float kSymbolNoise = 0.3f;

}  // namespace

SyntheticImages::SyntheticImages(base::Shape shape, int64_t classes)
    : shape_(std::move(shape)), classes_(classes), planes_(1), height_(1), width_(shape_.back()) {
  if (shape_.size() > 1) height_ = shape_[shape_.size() - 2];
  for (size_t i = 0; i + 2 < shape_.size(); ++i) planes_ *= shape_[i];
}

void SyntheticImages::Make(uint64_t key, int64_t number, void* input, void* target) const {
  const int64_t label = number % classes_;
  *static_cast<int64_t*>(target) = label;
  Random noise(key);
  const uint64_t pattern = Key(kPatternKey, static_cast<uint64_t>(label));
  auto* out = static_cast<float*>(input);
  for (int64_t plane = 0; plane < planes_; ++plane) {
    for (int64_t y = 0; y < height_; ++y) {
      const int64_t row = plane * height_ + y / kCell;
      Random cells(Key(pattern, static_cast<uint64_t>(row)));
      float value = 0;
      for (int64_t x = 0; x < width_; ++x) {
        if (x % kCell == 0) value = cells.Uniform();
        *out++ = value + noise.Normal();
      }
    }
  }
}

double SyntheticTable::Score(int64_t output, const float* values) const {
  Random weights(Key(kWeightKey, static_cast<uint64_t>(output)));
  double sum = 0;
  for (int64_t i = 0; i < features_; ++i) sum += static_cast<double>(weights.Normal()) * values[i];
  return sum / std::sqrt(static_cast<double>(features_));
}

void SyntheticTable::Make(uint64_t key, int64_t /*number*/, void* input, void* target) const {
  Random random(key);
  auto* values = static_cast<float*>(input);
  for (int64_t i = 0; i < features_; ++i) values[i] = random.Normal();
  if (classes_ == 0) {
    *static_cast<float*>(target) =
        static_cast<float>(Score(0, values)) + kTargetNoise * random.Normal();
    return;
  }
  int64_t best = 0;
  double best_score = Score(0, values);
  for (int64_t label = 1; label < classes_; ++label) {
    const double score = Score(label, values);
    if (score <= best_score) continue;
    best = label;
    best_score = score;
  }
  *static_cast<int64_t*>(target) = best;
}

void SyntheticTokens::Make(uint64_t key, int64_t number, void* input, void* target) const {
  const int64_t label = number % classes_;
  *static_cast<int64_t*>(target) = label;
  const int64_t of_label = (vocabulary_ - label + classes_ - 1) / classes_;  // ids of this class
  Random random(key);
  auto* ids = static_cast<int64_t*>(input);
  for (int64_t i = 0; i < length_; ++i) {
    const bool telling = i % 2 == 0;
    ids[i] = telling ? random.Below(of_label) * classes_ + label : random.Below(vocabulary_);
  }
}

void SyntheticSequence::Make(uint64_t key, int64_t /*number*/, void* input, void* target) const {
  Random random(key);
  auto* labels = static_cast<int64_t*>(target);
  const int64_t spoken = 1 + random.Below(symbols());
  for (int64_t i = 0; i < symbols(); ++i) {
    labels[i] = i < spoken ? 1 + random.Below(classes_ - 1) : 0;
  }
  auto* out = static_cast<float*>(input);
  for (int64_t frame = 0; frame < length_; ++frame) {
    const int64_t place = frame / kFramesPerSymbol;
    const bool silent = frame % kFramesPerSymbol == kFramesPerSymbol - 1 || place >= spoken;
    Random sound(Key(kSymbolKey, static_cast<uint64_t>(silent ? 0 : labels[place])));
    for (int64_t i = 0; i < features_; ++i) {
      *out++ = (silent ? 0.0f : sound.Normal()) + kSymbolNoise * random.Normal();
    }
  }
}

}  // namespace muster::data
