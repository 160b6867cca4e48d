// The record framing of TFRecord files:
//
//   u64 length | u32 masked CRC-32C of those 8 bytes | data | u32 masked CRC-32C of data
//
// all little-endian.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::base {

inline constexpr int64_t kRecordHeaderBytes = 12;
inline constexpr int64_t kRecordFooterBytes = 4;

// Appends `data` with header and footer to `out`.
void AppendRecord(absl::string_view data, std::string& out);

// Returns the number of data bytes that follow `header`, or DataLoss if the checksum of the length
// does not match. REQUIRES: header.size() >= kRecordHeaderBytes.
absl::StatusOr<uint64_t> DataLength(absl::string_view header);
// Returns DataLoss if `footer` is not the checksum of `data`. REQUIRES: footer.size() >=
// kRecordFooterBytes.
absl::Status CheckData(absl::string_view data, absl::string_view footer);

}  // namespace muster::base
