#include "summary/event_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes/record.h"
#include "base/status_macros.h"
#include "summary/event_decoder.h"

namespace muster::summary {
namespace {

// Above the size of any image or graph; a larger length means damage.
constexpr uint64_t kMaxDataBytes = 256 << 20;
constexpr int64_t kReadBytes = 64 << 10;

}  // namespace

EventReader::EventReader(std::string path, base::UniqueFd fd)
    : path_(std::move(path)), fd_(std::move(fd)) {}

absl::StatusOr<EventReader> EventReader::Open(const std::string& path) {
  // O_NONBLOCK keeps open() from waiting for the writer of a FIFO.
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  }
  return EventReader(path, std::move(fd));
}

absl::StatusOr<std::optional<Event>> EventReader::Next() {
  MUSTER_RETURN_IF_ERROR(status_);
  auto event = ReadEvent();
  if (!event.ok()) {
    status_ = base::Annotate(event.status(), absl::StrCat(path_, ", record at byte ", offset_));
    return status_;
  }
  return event;
}

absl::StatusOr<std::optional<Event>> EventReader::ReadEvent() {
  MUSTER_ASSIGN_OR_RETURN(const auto data, ReadRecord());
  if (!data) return std::nullopt;
  std::optional<Event> event = DecodeEvent(*data);
  if (!event) return absl::DataLossError("not a valid Event message");
  // Advances only past complete records, so that a later call reads an incomplete one again.
  offset_ +=
      base::kRecordHeaderBytes + static_cast<int64_t>(data->size()) + base::kRecordFooterBytes;
  return event;
}

absl::StatusOr<std::optional<absl::string_view>> EventReader::ReadRecord() {
  MUSTER_ASSIGN_OR_RETURN(const auto header, Bytes(offset_, base::kRecordHeaderBytes));
  if (!header) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t length, base::DataLength(*header));
  if (length > kMaxDataBytes) {
    return absl::DataLossError(
        absl::StrCat("length ", length, " exceeds the limit of ", kMaxDataBytes, " bytes"));
  }
  const auto size = static_cast<int64_t>(length);
  MUSTER_ASSIGN_OR_RETURN(
      const auto rest, Bytes(offset_ + base::kRecordHeaderBytes, size + base::kRecordFooterBytes));
  if (!rest) return std::nullopt;
  const absl::string_view data = rest->substr(0, length);
  MUSTER_RETURN_IF_ERROR(base::CheckData(data, rest->substr(length)));
  return data;
}

absl::StatusOr<std::optional<absl::string_view>> EventReader::Bytes(int64_t offset, int64_t size) {
  const auto buffered = [&] {
    return buffer_offset_ + static_cast<int64_t>(buffer_.size()) - offset;
  };
  if (offset < buffer_offset_ || buffered() < size) {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return absl::ErrnoToStatus(errno, "stat");
    // The file may grow between calls, so the size is read again each time that the buffer is too
    // short.
    if (info.st_size - offset < size) return std::nullopt;
    buffer_.resize(
        static_cast<size_t>(std::min(std::max(size, kReadBytes), info.st_size - offset)));
    buffer_offset_ = offset;
    size_t filled = 0;
    while (filled < buffer_.size()) {
      const ssize_t n = ::pread(fd_.get(), buffer_.data() + filled, buffer_.size() - filled,
                                offset + static_cast<int64_t>(filled));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, "read");
      if (n == 0) break;  // the file was truncated
      filled += static_cast<size_t>(n);
    }
    buffer_.resize(filled);
    if (buffered() < size) return std::nullopt;
  }
  return absl::string_view(buffer_).substr(static_cast<size_t>(offset - buffer_offset_),
                                           static_cast<size_t>(size));
}

}  // namespace muster::summary
