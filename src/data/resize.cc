#include "data/resize.h"

#include <algorithm>
#include <cmath>

namespace muster::data {
namespace {

// The pixels that contribute to one pixel of the result, along one axis.
struct Window {
  int64_t first = 0;
  std::vector<float> weights;  // their sum is 1
};

std::vector<Window> WindowsOf(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  std::vector<Window> windows(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(center - radius)));
    const auto last =
        std::min<int64_t>(from - 1, static_cast<int64_t>(std::floor(center + radius)));
    Window& window = windows[static_cast<size_t>(i)];
    window.first = first;
    double sum = 0;
    for (int64_t j = first; j <= last; ++j) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(j) - center) / radius);
      window.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : window.weights) weight = static_cast<float>(weight / sum);
  }
  return windows;
}

}  // namespace

std::vector<uint8_t> ResizeImage(absl::Span<const uint8_t> pixels, ImageSize from, ImageSize to,
                                 int64_t channels) {
  const std::vector<Window> across = WindowsOf(from.width, to.width);
  const std::vector<Window> down = WindowsOf(from.height, to.height);
  const int64_t stride = to.width * channels;
  std::vector<float> rows(static_cast<size_t>(from.height * stride));  // resized across only
  for (int64_t y = 0; y < from.height; ++y) {
    for (int64_t x = 0; x < to.width; ++x) {
      const Window& window = across[static_cast<size_t>(x)];
      for (int64_t c = 0; c < channels; ++c) {
        float value = 0;
        for (size_t k = 0; k < window.weights.size(); ++k) {
          const int64_t column = window.first + static_cast<int64_t>(k);
          value += window.weights[k] *
                   static_cast<float>(
                       pixels[static_cast<size_t>((y * from.width + column) * channels + c)]);
        }
        rows[static_cast<size_t>(y * stride + x * channels + c)] = value;
      }
    }
  }
  std::vector<uint8_t> result(static_cast<size_t>(to.height * stride));
  for (int64_t y = 0; y < to.height; ++y) {
    const Window& window = down[static_cast<size_t>(y)];
    for (int64_t i = 0; i < stride; ++i) {
      float value = 0;
      for (size_t k = 0; k < window.weights.size(); ++k) {
        const int64_t row = window.first + static_cast<int64_t>(k);
        value += window.weights[k] * rows[static_cast<size_t>(row * stride + i)];
      }
      result[static_cast<size_t>(y * stride + i)] =
          static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
    }
  }
  return result;
}

}  // namespace muster::data
