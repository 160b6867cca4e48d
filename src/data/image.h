// JPEG and PNG images.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::data {

// What one image may have at most.
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

struct ImageInfo {
  absl::string_view format;  // "jpeg" or "png"
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  // 1: grey, 3: colour; transparency is not counted
};

// Whether the bytes begin as one of these formats does.
bool LooksLikeImage(absl::string_view bytes);

// From its header. DataLoss when it is none of these formats, or damaged.
absl::StatusOr<ImageInfo> ReadImageInfo(absl::string_view bytes);

// The pixels of an image, row by row, `channels` bytes each: 1 makes it grey, 3 coloured. `out` has
// room for exactly height · width · channels. DataLoss when the image is damaged or cut off.
absl::Status DecodeImage(absl::string_view bytes, int64_t channels, absl::Span<uint8_t> out);

}  // namespace muster::data
