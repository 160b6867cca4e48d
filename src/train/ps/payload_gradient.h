// A task's gradient of a bucket, as it came: in pieces, of 32 or 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "train/optimizer_kernels.h"
#include "train/wire/message.h"

namespace muster::train {

class PayloadGradient final : public Gradient {
 public:
  // The payload must stay.
  PayloadGradient(const wire::Payload& payload, wire::Frame::Precision precision)
      : pieces_(payload.pieces()), precision_(precision) {}
  const float* Next(int64_t n, float* room) override;

 private:
  // The next bytes if they lie in one piece that is aligned to `alignment`, otherwise copied.
  const void* Take(size_t size, size_t alignment, void* room);

  absl::Span<const wire::Chunk> pieces_;
  const wire::Frame::Precision precision_;
  size_t offset_ = 0;  // in the first of them
};

// Converts elements that came in 16 bits.
void FromHalf(wire::Frame::Precision precision, const void* from, float* to, int64_t n);
size_t BytesOf(wire::Frame::Precision precision, int64_t elements);

}  // namespace muster::train
