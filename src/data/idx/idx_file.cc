#include "data/idx/idx_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "data/dataset.h"
#include "data/idx/gunzip.h"

namespace muster::data {
namespace {

constexpr int kMaxRank = 8;
constexpr int64_t kMaxHeaderBytes = 4 + 4 * kMaxRank;
constexpr int64_t kMaxCompressed = int64_t{1} << 30;
constexpr int64_t kMaxPayload = int64_t{1} << 46;

absl::StatusOr<base::DType> TypeOf(unsigned char code) {
  switch (code) {
    case 0x08:
      return base::DType::kUint8;
    case 0x09:
      return base::DType::kInt8;
    case 0x0b:
      return base::DType::kInt16;
    case 0x0c:
      return base::DType::kInt32;
    case 0x0d:
      return base::DType::kFloat32;
    case 0x0e:
      return base::DType::kFloat64;
    default:
      return absl::DataLossError(
          absl::StrCat("element type 0x", absl::Hex(code, absl::kZeroPad2), " is not an IDX type"));
  }
}

uint32_t BigEndian32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Converts from big-endian to this machine's byte order, in place.
void SwapElements(char* bytes, int64_t count, int64_t width) {
  if constexpr (std::endian::native == std::endian::big) return;
  if (width == 1) return;
  for (int64_t i = 0; i < count; ++i) std::reverse(bytes + i * width, bytes + (i + 1) * width);
}

bool Exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<IdxFile>> IdxFile::Open(const std::string& path, Limits limits) {
  const std::string compressed = absl::StrCat(path, ".gz");
  const bool plain = Exists(path);
  if (!plain && !Exists(compressed)) {
    return absl::NotFoundError(absl::StrCat("there is no file ", path, " nor ", compressed));
  }
  std::unique_ptr<IdxFile> file(new IdxFile(plain ? path : compressed));
  const absl::Status status = plain ? file->OpenPlain(limits) : file->OpenCompressed(limits);
  if (!status.ok()) return base::Annotate(status, file->path_);
  return file;
}

int64_t IdxFile::header_bytes() const { return 4 + 4 * (1 + static_cast<int64_t>(shape_.size())); }

absl::Status IdxFile::ParseHeader(absl::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) {
    return absl::DataLossError("is not an IDX file: it does not begin with two zero bytes");
  }
  MUSTER_ASSIGN_OR_RETURN(dtype_, TypeOf(static_cast<unsigned char>(bytes[2])));
  const int rank = static_cast<unsigned char>(bytes[3]);
  if (rank < 1 || rank > kMaxRank) {
    return absl::DataLossError(
        absl::StrCat("its header has ", rank, " dimensions; Muster supports 1 to ", kMaxRank));
  }
  if (bytes.size() < 4 + 4 * static_cast<size_t>(rank)) {
    return absl::DataLossError("its header is truncated");
  }
  size_ = BigEndian32(bytes.data() + 4);
  shape_.clear();
  int64_t example = base::SizeOf(dtype_);
  for (int i = 1; i < rank; ++i) {
    shape_.push_back(BigEndian32(bytes.data() + 4 + 4 * i));
    if (__builtin_mul_overflow(example, shape_.back(), &example) || example > kMaxFeatureBytes) {
      return absl::DataLossError("one example is larger than 1 GiB");
    }
  }
  if (example == 0) return absl::DataLossError("its examples have no elements");
  int64_t payload = 0;
  if (__builtin_mul_overflow(size_, example, &payload) || payload > kMaxPayload) {
    return absl::DataLossError("its elements are larger than 64 TiB");
  }
  return absl::OkStatus();
}

absl::Status IdxFile::CutOff(int64_t actual) const {
  return absl::DataLossError(absl::StrCat(
      "its header declares ", size_, " examples of ", example_bytes(), " bytes, ", payload_bytes(),
      " bytes in all, but ", actual, " follow: the file is damaged; download it again"));
}

absl::Status IdxFile::OpenPlain(Limits limits) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  base::UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, "cannot stat the file");
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError("is not a regular file");
  file_ = std::move(fd);
  std::string header(static_cast<size_t>(std::min<int64_t>(kMaxHeaderBytes, info.st_size)), '\0');
  MUSTER_RETURN_IF_ERROR(ReadBytes(0, static_cast<int64_t>(header.size()), header.data()));
  MUSTER_RETURN_IF_ERROR(ParseHeader(header));
  const int64_t actual = info.st_size - header_bytes();
  if (actual != payload_bytes()) return CutOff(actual);
  if (actual > limits.memory) return absl::OkStatus();
  std::string elements(static_cast<size_t>(actual), '\0');
  MUSTER_RETURN_IF_ERROR(ReadBytes(header_bytes(), actual, elements.data()));
  memory_ = std::move(elements);
  file_ = base::UniqueFd();
  return absl::OkStatus();
}

absl::Status IdxFile::OpenCompressed(Limits limits) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) return absl::ErrnoToStatus(errno, "cannot stat the file");
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError("is not a regular file");
  MUSTER_ASSIGN_OR_RETURN(const std::string compressed, base::ReadFile(path_, kMaxCompressed));
  // Decompresses twice: the header first, since it limits how much may follow.
  MUSTER_ASSIGN_OR_RETURN(const std::string header, Gunzip(compressed).Read(kMaxHeaderBytes));
  MUSTER_RETURN_IF_ERROR(ParseHeader(header));
  if (payload_bytes() > limits.decompressed) {
    return absl::ResourceExhaustedError(
        "is too large to be decompressed in memory; decompress it with gunzip");
  }
  Gunzip gunzip(compressed);
  MUSTER_RETURN_IF_ERROR(gunzip.Read(header_bytes()).status());
  // One byte more than expected, in order to detect a longer file.
  MUSTER_ASSIGN_OR_RETURN(memory_, gunzip.Read(payload_bytes() + 1));
  const auto actual = static_cast<int64_t>(memory_.size());
  if (actual < payload_bytes()) return CutOff(actual);
  if (actual > payload_bytes()) {
    return absl::DataLossError(absl::StrCat("has more than the ", payload_bytes(),
                                            " bytes of elements that its header declares"));
  }
  return absl::OkStatus();
}

absl::Status IdxFile::ReadBytes(int64_t offset, int64_t count, char* out) const {
  while (count > 0) {
    const ssize_t n = ::pread(file_.get(), out, static_cast<size_t>(count), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (n == 0) return absl::DataLossError("was truncated while it was being read");
    out += n;
    offset += n;
    count -= n;
  }
  return absl::OkStatus();
}

absl::Status IdxFile::Read(int64_t first, int64_t count, void* out) const {
  const int64_t offset = first * example_bytes();
  const int64_t bytes = count * example_bytes();
  if (file_.valid()) {
    const absl::Status status = ReadBytes(header_bytes() + offset, bytes, static_cast<char*>(out));
    if (!status.ok()) return base::Annotate(status, path_);
  } else {
    std::memcpy(out, memory_.data() + offset, static_cast<size_t>(bytes));
  }
  SwapElements(static_cast<char*>(out), bytes / base::SizeOf(dtype_), base::SizeOf(dtype_));
  return absl::OkStatus();
}

absl::StatusOr<IdxPair> OpenIdxPair(const std::string& images, const std::string& labels) {
  IdxPair pair;
  MUSTER_ASSIGN_OR_RETURN(pair.images, IdxFile::Open(images));
  MUSTER_ASSIGN_OR_RETURN(pair.labels, IdxFile::Open(labels));
  if (pair.images->size() != pair.labels->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        pair.images->path(), " has ", pair.images->size(), " examples, but ", pair.labels->path(),
        " has ", pair.labels->size(), "; both must describe the same examples"));
  }
  if (pair.images->size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(pair.images->path(), " has no examples"));
  }
  return pair;
}

}  // namespace muster::data
