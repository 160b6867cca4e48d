// The file with the samples of a task, docs/formats/samples.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "supervise/usage/sample.h"

namespace muster::supervise {

inline constexpr char kSampleMagic[] = "MSTRSMPL";
inline constexpr uint32_t kSampleVersion = 1;
inline constexpr size_t kSampleHeaderBytes = 16;
inline constexpr size_t kSampleRecordBytes = 72;
// A file with this many samples is down-sampled to half of them before the next one is appended.
inline constexpr size_t kMaxSamples = 1024;

// Appends samples to a file of bounded size. It must be the only writer of the file. Keeps nothing
// open. Not thread-safe.
class SampleFile {
 public:
  // Continues the file if it exists.
  explicit SampleFile(std::string path) : path_(std::move(path)) {}

  // Appends the sample, or replaces the whole file if it is full. Does not sync. If the disk is
  // full, returns an error and loses this sample; later ones can be appended.
  absl::Status Append(const Sample& sample);

 private:
  absl::Status Compact();
  absl::Status Write(const Sample& sample);

  const std::string path_;
  std::optional<size_t> records_;  // in the file; nullopt = unknown
};

// Returns the samples of a file, oldest first. Skips damaged samples; a truncated file has fewer.
// May be called while the file is written. Returns NotFound if there is no file, or DataLoss if it
// is not a sample file of a known version.
absl::StatusOr<std::vector<Sample>> ReadSampleFile(const std::string& path);

}  // namespace muster::supervise
