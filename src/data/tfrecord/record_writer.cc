#include "data/tfrecord/record_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/bytes/record.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::data {
namespace {

constexpr size_t kBuffer = size_t{1} << 20;
constexpr int kGzipBits = 16 + MAX_WBITS;
constexpr int kMemoryLevel = 8;  // zlib's own default

}  // namespace

void RecordWriter::EndDeflate::operator()(z_stream_s* stream) const {
  ::deflateEnd(stream);
  delete stream;
}

RecordWriter::RecordWriter(std::string path, std::string temporary, base::UniqueFd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

absl::StatusOr<RecordWriter> RecordWriter::Open(const std::string& path, Compression compression) {
  std::string temporary = absl::StrCat(path, ".partial-", ::getpid());
  base::UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot be written"));
  RecordWriter writer(path, std::move(temporary), std::move(fd));
  if (compression == Compression::kNone) return writer;
  auto stream = std::make_unique<z_stream_s>();
  const int bits = compression == Compression::kGzip ? kGzipBits : MAX_WBITS;
  if (::deflateInit2(stream.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("not enough memory to compress");
  }
  writer.stream_.reset(stream.release());
  writer.compressed_.resize(kBuffer);
  return writer;
}

RecordWriter::~RecordWriter() {
  if (fd_.valid()) ::unlink(temporary_.c_str());
}

absl::Status RecordWriter::Write(absl::string_view data) {
  base::AppendRecord(data, buffer_);
  ++records_;
  return buffer_.size() < kBuffer ? absl::OkStatus() : Flush(/*last=*/false);
}

absl::Status RecordWriter::Flush(bool last) {
  const absl::Status status =
      stream_ != nullptr ? Deflate(last) : base::WriteAll(fd_.get(), buffer_);
  buffer_.clear();
  return base::Annotate(status, path_);
}

absl::Status RecordWriter::Deflate(bool last) {
  absl::string_view rest = buffer_;
  do {
    const size_t piece = std::min(rest.size(), size_t{1} << 30);  // zlib's sizes have 32 bits
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream_->avail_in = static_cast<uInt>(piece);
    rest.remove_prefix(piece);
    const bool ends = last && rest.empty();
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(compressed_.data());
      stream_->avail_out = static_cast<uInt>(compressed_.size());
      ::deflate(stream_.get(), ends ? Z_FINISH : Z_NO_FLUSH);
      const size_t made = compressed_.size() - stream_->avail_out;
      MUSTER_RETURN_IF_ERROR(
          base::WriteAll(fd_.get(), absl::string_view(compressed_).substr(0, made)));
    } while (stream_->avail_out == 0);
  } while (!rest.empty());
  return absl::OkStatus();
}

absl::Status RecordWriter::Close() {
  MUSTER_RETURN_IF_ERROR(Flush(/*last=*/true));
  if (::fsync(fd_.get()) != 0) return absl::ErrnoToStatus(errno, path_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, path_);
  }
  fd_.Reset();
  return base::SyncFolder(base::FolderOf(path_));
}

}  // namespace muster::data
