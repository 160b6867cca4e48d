#include "train/ps/payload_gradient.h"

#include <algorithm>
#include <cstring>

#include "train/half.h"

namespace muster::train {

const void* PayloadGradient::Take(size_t size, size_t alignment, void* room) {
  auto* out = static_cast<std::byte*>(room);
  const void* taken = room;
  for (size_t left = size; left > 0;) {
    const wire::Chunk& piece = pieces_.front();
    const std::byte* from = static_cast<const std::byte*>(piece.data) + offset_;
    const size_t n = std::min(left, piece.size - offset_);
    const bool in_place = n == size && reinterpret_cast<uintptr_t>(from) % alignment == 0;
    if (in_place) {
      taken = from;
    } else {
      std::memcpy(out + (size - left), from, n);
    }
    left -= n;
    offset_ += n;
    if (offset_ == piece.size) {
      pieces_.remove_prefix(1);
      offset_ = 0;
    }
  }
  return taken;
}

const float* PayloadGradient::Next(int64_t n, float* room) {
  const size_t bytes = BytesOf(precision_, n);
  if (precision_ == wire::Frame::FLOAT32) {
    return static_cast<const float*>(Take(bytes, alignof(float), room));
  }
  std::byte packed[kMost * sizeof(uint16_t)];
  FromHalf(precision_, Take(bytes, 1, packed), room, n);
  return room;
}

void FromHalf(wire::Frame::Precision precision, const void* from, float* to, int64_t n) {
  (precision == wire::Frame::FLOAT16 ? FromFloat16 : FromBfloat16)(from, to, n);
}

size_t BytesOf(wire::Frame::Precision precision, int64_t elements) {
  return static_cast<size_t>(elements) * (precision == wire::Frame::FLOAT32 ? 4 : 2);
}

}  // namespace muster::train
