#include "data/input/batch.h"

#include <new>

namespace muster::data {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

void Column::Reset(const Feature& feature, int64_t count) {
  dtype = feature.dtype;
  shape.assign(1, count);
  shape.insert(shape.end(), feature.shape.begin(), feature.shape.end());
  const int64_t needed = bytes();
  if (memory_ != nullptr && needed <= capacity_) return;
  const int64_t rounded = (needed / kAlignment + 1) * kAlignment;
  memory_.reset(std::aligned_alloc(kAlignment, static_cast<size_t>(rounded)));
  capacity_ = memory_ == nullptr ? 0 : rounded;
  if (memory_ == nullptr) throw std::bad_alloc();
}

}  // namespace muster::data
