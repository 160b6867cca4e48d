#include "data/idx/gunzip.h"

#include <zlib.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::data {
namespace {

constexpr size_t kGunzipBytes = size_t{1} << 20;
constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr int kZlibOnly = MAX_WBITS;

}  // namespace

Gunzip::Gunzip(absl::string_view compressed, Deflated frame)
    : stream_(std::make_unique<z_stream_s>()), rest_(compressed) {
  const int bits = frame == Deflated::kGzip ? kGzipOnly : kZlibOnly;
  ready_ = ::inflateInit2(stream_.get(), bits) == Z_OK;
}

Gunzip::~Gunzip() {
  if (ready_) ::inflateEnd(stream_.get());
}

absl::StatusOr<std::string> Gunzip::Read(int64_t max_bytes) {
  if (!ready_) return absl::ResourceExhaustedError("not enough memory to decompress");
  std::string out;
  while (!ended_ && static_cast<int64_t>(out.size()) < max_bytes) {
    const size_t before = out.size();
    const size_t piece = std::min(kGunzipBytes, static_cast<size_t>(max_bytes) - before);
    out.resize(before + piece);
    stream_->next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream_->avail_out = static_cast<uInt>(piece);
    while (!ended_ && stream_->avail_out > 0) MUSTER_RETURN_IF_ERROR(Inflate());
    out.resize(out.size() - stream_->avail_out);
  }
  return out;
}

absl::Status Gunzip::Inflate() {
  if (stream_->avail_in == 0) {
    const size_t piece = std::min(kGunzipBytes, rest_.size());
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_->avail_in = static_cast<uInt>(piece);
    rest_.remove_prefix(piece);
  }
  const int code = ::inflate(stream_.get(), Z_NO_FLUSH);
  if (code == Z_OK) return absl::OkStatus();
  if (code == Z_STREAM_END) {
    // Another member follows if there is more input.
    ended_ = stream_->avail_in == 0 && rest_.empty();
    if (!ended_) ::inflateReset(stream_.get());
    return absl::OkStatus();
  }
  if (code == Z_MEM_ERROR) return absl::ResourceExhaustedError("not enough memory to decompress");
  // No progress is possible: there is room for output, so the input has ended too early.
  if (code == Z_BUF_ERROR) return absl::DataLossError("the compressed data is truncated");
  return absl::DataLossError(absl::StrCat("the compressed data is damaged: ",
                                          stream_->msg == nullptr ? "not deflated" : stream_->msg));
}

absl::StatusOr<std::string> GunzipAll(absl::string_view compressed, int64_t max_bytes) {
  MUSTER_ASSIGN_OR_RETURN(std::string text, Gunzip(compressed).Read(max_bytes + 1));
  if (static_cast<int64_t>(text.size()) <= max_bytes) return text;
  return absl::OutOfRangeError(
      absl::StrCat("decompresses to more than ", max_bytes, " bytes, which is too much"));
}

}  // namespace muster::data
