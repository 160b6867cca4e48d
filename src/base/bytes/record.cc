#include "base/bytes/record.h"

#include <bit>
#include <cstring>

#include "base/bytes/crc32c.h"

namespace muster::base {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename Number>
void Append(Number number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Number>
Number Load(absl::string_view bytes) {
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

}  // namespace

void AppendRecord(absl::string_view data, std::string& out) {
  const size_t begin = out.size();
  out.reserve(begin + kRecordHeaderBytes + data.size() + kRecordFooterBytes);
  Append<uint64_t>(data.size(), out);
  Append(MaskCrc32c(Crc32c(absl::string_view(out).substr(begin))), out);
  out.append(data.data(), data.size());
  Append(MaskCrc32c(Crc32c(data)), out);
}

absl::StatusOr<uint64_t> DataLength(absl::string_view header) {
  const absl::string_view length = header.substr(0, sizeof(uint64_t));
  if (MaskCrc32c(Crc32c(length)) != Load<uint32_t>(header.substr(sizeof(uint64_t)))) {
    return absl::DataLossError("checksum mismatch in the length of a record");
  }
  return Load<uint64_t>(length);
}

absl::Status CheckData(absl::string_view data, absl::string_view footer) {
  if (MaskCrc32c(Crc32c(data)) == Load<uint32_t>(footer)) return absl::OkStatus();
  return absl::DataLossError("checksum mismatch in the data of a record");
}

}  // namespace muster::base
