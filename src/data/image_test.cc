#include "data/image.h"

#include <string>
#include <vector>

#include "data/image_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::HasSubstr;

std::vector<uint8_t> Gradient(int64_t height, int64_t width, int64_t channels) {
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < height * width * channels; ++i) {
    pixels.push_back(static_cast<uint8_t>(i / channels * 255 / (height * width)));
  }
  return pixels;
}

TEST(ImageTest, PngIsExact) {
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> pixels = Gradient(5, 7, channels);
    const std::string png = MakePng(pixels, 5, 7, channels);
    const auto info = ReadImageInfo(png);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->format, "png");
    EXPECT_EQ(info->height, 5);
    EXPECT_EQ(info->width, 7);
    EXPECT_EQ(info->channels, channels);
    std::vector<uint8_t> decoded(pixels.size());
    ASSERT_TRUE(DecodeImage(png, channels, absl::MakeSpan(decoded)).ok());
    EXPECT_EQ(decoded, pixels);
  }
}

TEST(ImageTest, JpegIsNear) {
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> pixels = Gradient(16, 24, channels);
    const std::string jpeg = MakeJpeg(pixels, 16, 24, channels);
    const auto info = ReadImageInfo(jpeg);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->format, "jpeg");
    EXPECT_EQ(info->height, 16);
    EXPECT_EQ(info->width, 24);
    EXPECT_EQ(info->channels, channels);
    std::vector<uint8_t> decoded(pixels.size());
    ASSERT_TRUE(DecodeImage(jpeg, channels, absl::MakeSpan(decoded)).ok());
    for (size_t i = 0; i < pixels.size(); ++i) EXPECT_NEAR(decoded[i], pixels[i], 12) << i;
  }
}

TEST(ImageTest, GreyAndColourBecomeEachOther) {
  const std::vector<uint8_t> grey = Gradient(4, 4, 1);
  const std::vector<uint8_t> colour = Gradient(4, 4, 3);
  std::vector<uint8_t> decoded(48);
  ASSERT_TRUE(DecodeImage(MakePng(grey, 4, 4, 1), 3, absl::MakeSpan(decoded)).ok());
  EXPECT_EQ(decoded, colour);
  decoded.resize(16);
  ASSERT_TRUE(DecodeImage(MakeJpeg(colour, 4, 4, 3), 1, absl::MakeSpan(decoded)).ok());
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(decoded[i], grey[i], 12);
}

TEST(ImageTest, DamageIsReported) {
  std::vector<uint8_t> out(48 * 48);
  const std::vector<uint8_t> pixels = Gradient(48, 48, 1);
  for (const std::string& image : {MakePng(pixels, 48, 48, 1), MakeJpeg(pixels, 48, 48, 1)}) {
    for (size_t size = 0; size + 20 < image.size(); size += 7) {
      EXPECT_FALSE(DecodeImage(image.substr(0, size), 1, absl::MakeSpan(out)).ok()) << size;
    }
    EXPECT_THAT(DecodeImage(image, 3, absl::MakeSpan(out)).message(), HasSubstr("another size"));
  }
  EXPECT_THAT(ReadImageInfo("GIF89a").status().message(), HasSubstr("neither a JPEG nor a PNG"));
  EXPECT_THAT(ReadImageInfo("\xff\xd8\xff").status().message(), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace muster::data
