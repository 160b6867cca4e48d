#include "supervise/usage/sample_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/bytes/crc32c.h"
#include "base/files/files.h"
#include "base/files/regular_file.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"

namespace muster::supervise {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int64_t kMaxFileBytes = 1 << 20;
constexpr size_t kChecksumAt = kSampleRecordBytes - sizeof(uint32_t);
constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();

template <typename T>
void AppendNumber(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T TakeNumber(absl::string_view& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  bytes.remove_prefix(sizeof(value));
  return value;
}

std::string Header() {
  std::string header = kSampleMagic;
  AppendNumber(kSampleVersion, header);
  AppendNumber(static_cast<uint32_t>(kSampleRecordBytes), header);
  return header;
}

std::string EncodeSample(const Sample& sample) {
  std::string record;
  AppendNumber(absl::ToUnixMicros(sample.time), record);
  AppendNumber(absl::ToInt64Microseconds(sample.interval), record);
  AppendNumber(static_cast<uint32_t>(sample.attempt), record);
  for (const auto load : kLoads) {
    const std::optional<Load>& value = sample.*load;
    AppendNumber(value.has_value() ? static_cast<float>(value->mean) : kAbsent, record);
    AppendNumber(value.has_value() ? static_cast<float>(value->peak) : kAbsent, record);
  }
  AppendNumber(base::Crc32c(record), record);
  return record;
}

// Returns nullopt if the record is damaged. REQUIRES: `record` has kSampleRecordBytes.
std::optional<Sample> DecodeSample(absl::string_view record) {
  const uint32_t checksum = base::Crc32c(record.substr(0, kChecksumAt));
  Sample sample;
  sample.time = absl::FromUnixMicros(TakeNumber<int64_t>(record));
  sample.interval = absl::Microseconds(TakeNumber<int64_t>(record));
  sample.attempt = static_cast<int>(TakeNumber<uint32_t>(record));
  for (const auto load : kLoads) {
    const Load value{.mean = TakeNumber<float>(record), .peak = TakeNumber<float>(record)};
    if (std::isfinite(value.mean) && std::isfinite(value.peak)) sample.*load = value;
  }
  if (TakeNumber<uint32_t>(record) != checksum) return std::nullopt;
  if (sample.interval < absl::ZeroDuration() || sample.attempt < 0) return std::nullopt;
  return sample;
}

absl::StatusOr<std::string> ReadRecords(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(std::string content, base::ReadRegularFile(path, kMaxFileBytes));
  if (absl::string_view(content).substr(0, kSampleHeaderBytes) != Header()) {
    return absl::DataLossError(absl::StrCat(path, " is not a sample file of version 1"));
  }
  return content.substr(kSampleHeaderBytes);
}

}  // namespace

absl::StatusOr<std::vector<Sample>> ReadSampleFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string content, ReadRecords(path));
  std::vector<Sample> samples;
  for (absl::string_view records = content; records.size() >= kSampleRecordBytes;
       records.remove_prefix(kSampleRecordBytes)) {
    const auto sample = DecodeSample(records.substr(0, kSampleRecordBytes));
    if (sample.has_value()) samples.push_back(*sample);
  }
  return samples;
}

absl::Status SampleFile::Append(const Sample& sample) {
  if (!records_.has_value()) {
    const auto content = ReadRecords(path_);
    // A file that is not readable is replaced.
    records_ = content.ok() ? content->size() / kSampleRecordBytes : 0;
  }
  if (*records_ >= kMaxSamples) MUSTER_RETURN_IF_ERROR(Compact());
  absl::Status written = Write(sample);
  if (written.ok()) {
    ++*records_;
  } else {
    records_.reset();
  }
  return written;
}

absl::Status SampleFile::Compact() {
  std::vector<Sample> samples = ReadSampleFile(path_).value_or(std::vector<Sample>());
  samples = Downsample(samples, kMaxSamples / 2);
  std::string content = Header();
  for (const Sample& sample : samples) content += EncodeSample(sample);
  MUSTER_RETURN_IF_ERROR(base::ReplaceFile(path_, content));
  records_ = samples.size();
  return absl::OkStatus();
}

// The position is explicit, so a record that was written in part is overwritten by the next one.
absl::Status SampleFile::Write(const Sample& sample) {
  const bool is_first = *records_ == 0;
  // O_NONBLOCK: does not wait for a reader if the path is a FIFO.
  const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const base::UniqueFd fd(::open(path_.c_str(), flags | (is_first ? O_CREAT | O_TRUNC : 0), 0600));
  if (!fd.valid()) return base::DiskError(errno, path_);
  std::string bytes = EncodeSample(sample);
  off_t at = static_cast<off_t>(kSampleHeaderBytes + *records_ * kSampleRecordBytes);
  if (is_first) {
    bytes = Header() + bytes;
    at = 0;
  }
  const ssize_t count = ::pwrite(fd.get(), bytes.data(), bytes.size(), at);
  if (count == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return base::DiskError(count < 0 ? errno : ENOSPC, path_);
}

}  // namespace muster::supervise
