// One IDX file: an array of examples of one shape, as MNIST is published.
//
//   0 0 TYPE RANK | RANK sizes of 4 bytes | the elements in row-major order
//
// TYPE is 08 (uint8), 09 (int8), 0B (int16), 0C (int32), 0D (float32) or 0E (float64). All numbers
// are big-endian.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/bytes/dtype.h"
#include "base/files/unique_fd.h"

namespace muster::data {

// Reads large uncompressed files from disk on demand; keeps others in memory. Read() is
// thread-safe.
class IdxFile {
 public:
  struct Limits {
    int64_t memory = int64_t{256} << 20;      // for uncompressed files
    int64_t decompressed = int64_t{4} << 30;  // for compressed files; larger ones are rejected
  };

  // Opens `path` or `path`.gz, whichever exists. Returns NotFound if neither does, DataLoss if the
  // content does not match the header. Checks the header before allocating memory.
  static absl::StatusOr<std::unique_ptr<IdxFile>> Open(const std::string& path) {
    return Open(path, Limits());
  }
  static absl::StatusOr<std::unique_ptr<IdxFile>> Open(const std::string& path, Limits limits);

  const std::string& path() const { return path_; }  // with .gz if that was opened
  int64_t size() const { return size_; }             // examples; may be 0
  base::DType dtype() const { return dtype_; }
  const base::Shape& shape() const { return shape_; }  // of one example
  int64_t example_bytes() const { return base::ElementsOf(shape_) * base::SizeOf(dtype_); }

  // Reads `count` examples from `first` on, in this machine's byte order.
  // REQUIRES: first + count <= size(); `out` has room for count * example_bytes().
  absl::Status Read(int64_t first, int64_t count, void* out) const;

 private:
  explicit IdxFile(std::string path) : path_(std::move(path)) {}
  absl::Status ParseHeader(absl::string_view bytes);
  absl::Status OpenPlain(Limits limits);
  absl::Status OpenCompressed(Limits limits);
  absl::Status ReadBytes(int64_t offset, int64_t count, char* out) const;
  absl::Status CutOff(int64_t actual) const;
  int64_t header_bytes() const;
  int64_t payload_bytes() const { return size_ * example_bytes(); }

  std::string path_;
  int64_t size_ = 0;
  base::DType dtype_ = base::DType::kUint8;
  base::Shape shape_;
  base::UniqueFd file_;  // of a file that is read on demand
  std::string memory_;   // the elements of a file in memory
};

// The images and labels of one split.
struct IdxPair {
  std::unique_ptr<IdxFile> images;
  std::unique_ptr<IdxFile> labels;
};

// Opens both files as IdxFile::Open() does. Returns InvalidArgument if they have different numbers
// of examples, or none.
absl::StatusOr<IdxPair> OpenIdxPair(const std::string& images, const std::string& labels);

}  // namespace muster::data
