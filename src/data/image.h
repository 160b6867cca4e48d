// JPEG and PNG images.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::data {

// The limit for one image.
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

struct ImageInfo {
  absl::string_view format;  // "jpeg" or "png"
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  // 1: gray, 3: color; alpha is not counted
};

// Returns whether the bytes begin with the signature of one of these formats.
bool LooksLikeImage(absl::string_view bytes);

// Parses an image's header. Returns DataLoss if it is damaged or of another format.
absl::StatusOr<ImageInfo> ReadImageInfo(absl::string_view bytes);

// Decodes the pixels of an image row by row, `channels` (1 or 3) bytes each, converting to gray or
// color as needed. Returns DataLoss if the image is damaged or truncated.
// REQUIRES: out.size() == height * width * channels.
absl::Status DecodeImage(absl::string_view bytes, int64_t channels, absl::Span<uint8_t> out);

// Returns the pixels, `channels` (1 or 3) bytes each, as a PNG.
// REQUIRES: pixels.size() == height * width * channels.
absl::StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int64_t height,
                                      int64_t width, int64_t channels);

}  // namespace muster::data
