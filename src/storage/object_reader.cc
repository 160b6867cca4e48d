#include "storage/object_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/file_errors.h"
#include "storage/span_sink.h"

namespace muster::storage {
absl::StatusOr<size_t> ObjectReader::Read(int64_t offset, absl::Span<char> buffer) {
  if (offset < 0) return NegativeOffset();
  if (offset >= size_ || buffer.empty()) return 0;
  const auto bytes = std::min<int64_t>(static_cast<int64_t>(buffer.size()), size_ - offset);
  SpanSink sink(buffer.first(static_cast<size_t>(bytes)));
  MUSTER_ASSIGN_OR_RETURN(const net::Response response,
                          Get(absl::StrCat("bytes=", offset, "-", offset + bytes - 1), sink));
  // A server may answer a request for the whole object with 200.
  const bool whole = bytes == size_ && response.status == 200;
  if ((response.status != 206 && !whole) || sink.filled() != static_cast<size_t>(bytes)) {
    return absl::DataLossError(
        absl::StrCat(url_.ToString(), ": the server sent another range than requested"));
  }
  MUSTER_RETURN_IF_ERROR(Check(offset, absl::string_view(buffer.data(), sink.filled())));
  return sink.filled();
}

}  // namespace muster::storage
