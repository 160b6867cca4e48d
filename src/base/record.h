// The framing of TFRecord files:
//
//   u64 length | u32 masked CRC-32C of those 8 bytes | data | u32 masked CRC-32C of data
//
// all little-endian.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr int64_t kRecordHeaderBytes = 12;
inline constexpr int64_t kRecordFooterBytes = 4;

void AppendRecord(absl::string_view data, std::string& out);

// Of the kRecordHeaderBytes at the beginning of a record: how many bytes of data follow. DataLoss
// when the check sum is not that of the length.
absl::StatusOr<uint64_t> DataLength(absl::string_view header);
// DataLoss when `footer`, the kRecordFooterBytes after `data`, is not its check sum.
absl::Status CheckData(absl::string_view data, absl::string_view footer);

}  // namespace muster
