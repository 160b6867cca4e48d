#include "data/image.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
// Requires the two includes above.
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::data {
namespace {

bool IsJpeg(absl::string_view bytes) { return absl::StartsWith(bytes, "\xff\xd8\xff"); }
bool IsPng(absl::string_view bytes) { return absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n"); }

absl::Status CheckSize(int64_t height, int64_t width) {
  if (height > 0 && width > 0 && height <= kMaxPixels / width) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the image has an invalid size of ", width, " x ", height, " pixels"));
}

// libjpeg reports errors by longjmp(), so no object with a destructor may live between setjmp() and
// a call of libjpeg.
struct Jpeg {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
  bool cut_off;
  bool created;
};

void Escape(j_common_ptr info) {
  auto* jpeg = static_cast<Jpeg*>(info->client_data);
  info->err->format_message(info, jpeg->message);
  std::longjmp(jpeg->escape, 1);
}

// Does not print warnings, but records those about missing data.
void NoteWarning(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) {
    static_cast<Jpeg*>(info->client_data)->cut_off = true;
  }
}

bool ReadJpegHeader(Jpeg& jpeg, absl::string_view bytes) {
  if (setjmp(jpeg.escape) != 0) return false;
  jpeg.info.err = jpeg_std_error(&jpeg.errors);
  jpeg.info.client_data = &jpeg;
  jpeg.errors.error_exit = Escape;
  jpeg.errors.emit_message = NoteWarning;
  jpeg_create_decompress(&jpeg.info);
  jpeg.created = true;
  jpeg_mem_src(&jpeg.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg.info, TRUE);
  return true;
}

bool ReadJpegPixels(Jpeg& jpeg, int64_t channels, uint8_t* out) {
  if (setjmp(jpeg.escape) != 0) return false;
  jpeg.info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&jpeg.info);
  const size_t stride = static_cast<size_t>(jpeg.info.output_width) *
                        static_cast<size_t>(jpeg.info.output_components);
  while (jpeg.info.output_scanline < jpeg.info.output_height) {
    JSAMPROW row = out + jpeg.info.output_scanline * stride;
    jpeg_read_scanlines(&jpeg.info, &row, 1);
  }
  jpeg_finish_decompress(&jpeg.info);
  return true;
}

class JpegImage {
 public:
  explicit JpegImage(absl::string_view bytes) : jpeg_{}, ok_(ReadJpegHeader(jpeg_, bytes)) {}
  ~JpegImage() {
    if (jpeg_.created) jpeg_destroy_decompress(&jpeg_.info);
  }
  JpegImage(const JpegImage&) = delete;
  JpegImage& operator=(const JpegImage&) = delete;

  absl::StatusOr<ImageInfo> Info() const {
    if (!ok_) return Damage();
    const int64_t channels = jpeg_.info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    return ImageInfo{"jpeg", jpeg_.info.image_height, jpeg_.info.image_width, channels};
  }

  absl::Status Decode(int64_t channels, uint8_t* out) {
    if (!ok_ || !ReadJpegPixels(jpeg_, channels, out)) return Damage();
    if (jpeg_.cut_off) return absl::DataLossError("the JPEG image is truncated or damaged");
    return absl::OkStatus();
  }

 private:
  absl::Status Damage() const {
    return absl::DataLossError(absl::StrCat("the JPEG image cannot be read: ", jpeg_.message));
  }

  Jpeg jpeg_;
  bool ok_;
};

class PngImage {
 public:
  explicit PngImage(absl::string_view bytes) : image_{} {
    image_.version = PNG_IMAGE_VERSION;
    ok_ = png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) != 0;
  }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  absl::StatusOr<ImageInfo> Info() const {
    if (!ok_) return Damage();
    const int64_t channels = (image_.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
    return ImageInfo{"png", image_.height, image_.width, channels};
  }

  absl::Status Decode(int64_t channels, uint8_t* out) {
    if (!ok_) return Damage();
    image_.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    const png_color black{};
    // Composes transparent pixels with black.
    const int done = png_image_finish_read(&image_, &black, out, 0, nullptr);
    return done != 0 ? absl::OkStatus() : Damage();
  }

 private:
  absl::Status Damage() const {
    return absl::DataLossError(absl::StrCat("the PNG image cannot be read: ", image_.message));
  }

  png_image image_;
  bool ok_ = false;
};

template <typename Image>
absl::Status DecodeAs(absl::string_view bytes, int64_t channels, absl::Span<uint8_t> out) {
  Image image(bytes);
  MUSTER_ASSIGN_OR_RETURN(const ImageInfo info, image.Info());
  MUSTER_RETURN_IF_ERROR(CheckSize(info.height, info.width));
  if (info.height * info.width * channels != static_cast<int64_t>(out.size())) {
    return absl::InvalidArgumentError("the image has another size");
  }
  return image.Decode(channels, out.data());
}

absl::Status NoImage() { return absl::DataLossError("is neither a JPEG nor a PNG image"); }

}  // namespace

bool LooksLikeImage(absl::string_view bytes) { return IsJpeg(bytes) || IsPng(bytes); }

absl::StatusOr<ImageInfo> ReadImageInfo(absl::string_view bytes) {
  if (!LooksLikeImage(bytes)) return NoImage();
  MUSTER_ASSIGN_OR_RETURN(const ImageInfo info,
                          IsJpeg(bytes) ? JpegImage(bytes).Info() : PngImage(bytes).Info());
  MUSTER_RETURN_IF_ERROR(CheckSize(info.height, info.width));
  return info;
}

absl::Status DecodeImage(absl::string_view bytes, int64_t channels, absl::Span<uint8_t> out) {
  if (channels != 1 && channels != 3) return absl::InvalidArgumentError("channels must be 1 or 3");
  if (!LooksLikeImage(bytes)) return NoImage();
  return IsJpeg(bytes) ? DecodeAs<JpegImage>(bytes, channels, out)
                       : DecodeAs<PngImage>(bytes, channels, out);
}

absl::StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int64_t height,
                                      int64_t width, int64_t channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  std::string bytes;
  // The first call computes the size.
  for (const bool write : {false, true}) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, write ? bytes.data() : nullptr, &size, 0, pixels.data(),
                                  0, nullptr) == 0) {
      return absl::InternalError(absl::StrCat("cannot encode the image: ", image.message));
    }
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace muster::data
