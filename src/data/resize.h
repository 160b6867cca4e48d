// Scales images.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster::data {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

// Returns the pixels at another size, row by row, `channels` bytes each. Linear interpolation,
// whose filter is widened when it shrinks so that every pixel of the image counts.
// REQUIRES: all sizes are positive; pixels.size() == from.height * from.width * channels.
std::vector<uint8_t> ResizeImage(absl::Span<const uint8_t> pixels, ImageSize from, ImageSize to,
                                 int64_t channels);

}  // namespace muster::data
