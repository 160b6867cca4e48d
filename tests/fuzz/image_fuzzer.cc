// Decodes arbitrary bytes as an image of limited size.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto info = muster::data::ReadImageInfo(bytes);
  if (!info.ok() || info->height * info->width > 1 << 16) return 0;
  for (const int64_t channels : {1, 3}) {
    std::vector<uint8_t> pixels(static_cast<size_t>(info->height * info->width * channels));
    (void)muster::data::DecodeImage(bytes, channels, absl::MakeSpan(pixels));
  }
  return 0;
}
