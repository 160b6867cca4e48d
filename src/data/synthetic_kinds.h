// The generators of synthetic data.
#pragma once

#include <cstdint>

#include "data/input/batch.h"

namespace muster::data {

// Generates examples. Immutable, hence thread-safe.
class SyntheticKind {
 public:
  virtual ~SyntheticKind() = default;

  virtual Feature inputs() const = 0;
  virtual Feature targets() const = 0;
  virtual int64_t classes() const = 0;
  virtual int64_t vocabulary() const { return 0; }
  // Writes one example. `key` is its random key; `number` is its index in the split.
  virtual void Make(uint64_t key, int64_t number, void* input, void* target) const = 0;
};

class SyntheticImages : public SyntheticKind {
 public:
  SyntheticImages(base::Shape shape, int64_t classes);
  Feature inputs() const override { return {base::DType::kFloat32, shape_}; }
  Feature targets() const override { return {base::DType::kInt64, {}}; }
  int64_t classes() const override { return classes_; }
  void Make(uint64_t key, int64_t number, void* input, void* target) const override;

 private:
  base::Shape shape_;
  int64_t classes_;
  int64_t planes_;  // product of the dimensions before the last two
  int64_t height_;
  int64_t width_;
};

class SyntheticTable : public SyntheticKind {
 public:
  SyntheticTable(int64_t features, int64_t classes) : features_(features), classes_(classes) {}
  Feature inputs() const override { return {base::DType::kFloat32, {features_}}; }
  Feature targets() const override {
    return classes_ > 0 ? Feature{base::DType::kInt64, {}} : Feature{base::DType::kFloat32, {1}};
  }
  int64_t classes() const override { return classes_; }
  void Make(uint64_t key, int64_t number, void* input, void* target) const override;

 private:
  double Score(int64_t output, const float* values) const;

  int64_t features_;
  int64_t classes_;
};

class SyntheticTokens : public SyntheticKind {
 public:
  SyntheticTokens(int64_t length, int64_t vocabulary, int64_t classes)
      : length_(length), vocabulary_(vocabulary), classes_(classes) {}
  Feature inputs() const override { return {base::DType::kInt64, {length_}}; }
  Feature targets() const override { return {base::DType::kInt64, {}}; }
  int64_t classes() const override { return classes_; }
  int64_t vocabulary() const override { return vocabulary_; }
  void Make(uint64_t key, int64_t number, void* input, void* target) const override;

 private:
  int64_t length_;
  int64_t vocabulary_;
  int64_t classes_;
};

class SyntheticSequence : public SyntheticKind {
 public:
  static constexpr int64_t kFramesPerSymbol = 4;

  SyntheticSequence(int64_t length, int64_t features, int64_t classes)
      : length_(length), features_(features), classes_(classes) {}
  Feature inputs() const override { return {base::DType::kFloat32, {length_, features_}}; }
  Feature targets() const override { return {base::DType::kInt64, {symbols()}}; }
  int64_t classes() const override { return classes_; }
  void Make(uint64_t key, int64_t number, void* input, void* target) const override;

 private:
  int64_t symbols() const { return length_ / kFramesPerSymbol; }

  int64_t length_;
  int64_t features_;
  int64_t classes_;
};

}  // namespace muster::data
