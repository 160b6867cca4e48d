#include "storage/part_writer.h"

#include <algorithm>

#include "storage/file_errors.h"

namespace muster::storage {

absl::Status PartWriter::Append(absl::string_view bytes) {
  while (status_.ok() && !bytes.empty()) {
    // A full part is sent only when more bytes follow: the last one goes to SendLast().
    if (buffer_.size() >= part_bytes_) {
      in_parts_ = true;
      status_ = SendPart(buffer_);
      buffer_.clear();
      if (!status_.ok()) Abort();
      continue;
    }
    const size_t n = std::min(bytes.size(), part_bytes_ - buffer_.size());
    buffer_.append(bytes.data(), n);
    bytes.remove_prefix(n);
  }
  return status_;
}

absl::Status PartWriter::Close() {
  if (!status_.ok()) return status_;
  const absl::Status status = in_parts_ ? SendLast(buffer_) : SendWhole(buffer_);
  if (!status.ok()) Abort();
  buffer_ = {};
  status_ = status.ok() ? AlreadyClosed(url_) : status;
  return status;
}

}  // namespace muster::storage
