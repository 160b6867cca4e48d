// Images for tests.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
// Requires the two includes above.
#include <jpeglib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/image.h"
#include "gtest/gtest.h"

namespace muster::data {

inline std::string MakePng(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                           int64_t channels) {
  const auto bytes = EncodePng(pixels, height, width, channels);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or("");
}

inline std::string MakeJpeg(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                            int64_t channels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &out, &size);
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = static_cast<int>(channels);
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  jpeg_start_compress(&info, TRUE);
  for (int64_t row = 0; row < height; ++row) {
    auto* line = const_cast<uint8_t*>(pixels.data() + row * width * channels);
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string bytes(reinterpret_cast<char*>(out), size);
  std::free(out);
  return bytes;
}

}  // namespace muster::data
