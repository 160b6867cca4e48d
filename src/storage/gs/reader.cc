#include "storage/gs/reader.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/bytes/crc32c.h"
#include "base/status_macros.h"
#include "storage/objects.h"

namespace muster::storage {
namespace {

// Bounds the memory of a reader with random access, whose ranges never join.
constexpr size_t kMaxRanges = 1 << 16;

}  // namespace

std::optional<uint32_t> RangeSums::Add(int64_t offset, absl::string_view bytes) {
  Range range{.end = offset + static_cast<int64_t>(bytes.size()), .crc = base::Crc32c(bytes)};
  if (offset == 0 && range.end == size_) return range.crc;
  absl::MutexLock lock(&mutex_);
  auto next = ranges_.lower_bound(offset);
  const auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
  const bool overlaps = (next != ranges_.end() && next->first < range.end) ||
                        (before != ranges_.end() && before->second.end > offset);
  if (overlaps || ranges_.size() >= kMaxRanges) return std::nullopt;
  if (next != ranges_.end() && next->first == range.end) {
    const int64_t more = next->second.end - next->first;
    range = {next->second.end, base::ConcatCrc32c(range.crc, next->second.crc, more)};
    ranges_.erase(next);
  }
  if (before != ranges_.end() && before->second.end == offset) {
    range.crc = base::ConcatCrc32c(before->second.crc, range.crc, range.end - offset);
    offset = before->first;
  }
  if (offset == 0 && range.end == size_) {
    ranges_.clear();
    return range.crc;
  }
  ranges_[offset] = range;
  return std::nullopt;
}

absl::StatusOr<net::Response> GsReader::Get(const std::string& range, net::BodySink& sink) {
  // Without Accept-Encoding, the server decompresses gzip objects and ignores the range.
  const GsRequest request{.url = url(),
                          .query = {{"alt", "media"}, {"ifGenerationMatch", generation_}},
                          .headers = {{"Range", range}, {"Accept-Encoding", "gzip"}},
                          .sink = &sink};
  MUSTER_ASSIGN_OR_RETURN(net::Response response, client_.Send(request));
  if (response.status == 412) return Replaced(url());
  MUSTER_RETURN_IF_ERROR(GsClient::ErrorOf(request, response));
  const absl::string_view generation = response.Header("x-goog-generation");
  if (!generation.empty() && generation != generation_) return Replaced(url());
  return response;
}

absl::Status GsReader::Check(int64_t offset, absl::string_view bytes) {
  if (!crc32c_.has_value()) return absl::OkStatus();
  const std::optional<uint32_t> crc = sums_.Add(offset, bytes);
  if (!crc.has_value() || *crc == *crc32c_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      url().ToString(), ": the downloaded bytes do not match the storage's checksum; try again"));
}

}  // namespace muster::storage
