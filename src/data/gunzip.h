// gzip and zlib, decompressed piece by piece, so that a few bytes can never ask for a lot of
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct z_stream_s;

namespace muster::data {

// The frame around deflated data: RFC 1952 or RFC 1950.
enum class Deflated { kGzip, kZlib };

// `compressed` must outlive it. Members that follow each other are one text, as gzip has it.
class Gunzip {
 public:
  explicit Gunzip(absl::string_view compressed, Deflated frame = Deflated::kGzip);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Up to `max_bytes` more; fewer only at the end. DataLoss when the data is not in that frame,
  // damaged or cut off.
  absl::StatusOr<std::string> Read(int64_t max_bytes);

 private:
  absl::Status Inflate();

  std::unique_ptr<z_stream_s> stream_;
  absl::string_view rest_;  // not given to zlib yet, which counts in 32 bits
  bool ready_ = false;      // zlib has been set up
  bool ended_ = false;
};

// All of it. OutOfRange when it is more than `max_bytes`.
absl::StatusOr<std::string> GunzipAll(absl::string_view compressed, int64_t max_bytes);

}  // namespace muster::data
