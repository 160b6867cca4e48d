// Decompresses gzip and zlib data in pieces, so that small input cannot allocate much memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct z_stream_s;

namespace muster::data {

// The framing of deflated data: RFC 1952 (gzip) or RFC 1950 (zlib).
enum class Deflated { kGzip, kZlib };

// Concatenates consecutive gzip members, as gzip does. REQUIRES: `compressed` outlives this object.
class Gunzip {
 public:
  explicit Gunzip(absl::string_view compressed, Deflated frame = Deflated::kGzip);
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Returns up to `max_bytes` more bytes; fewer only at the end. Returns DataLoss if the data has
  // another framing, is damaged or truncated.
  absl::StatusOr<std::string> Read(int64_t max_bytes);

 private:
  absl::Status Inflate();

  std::unique_ptr<z_stream_s> stream_;
  absl::string_view rest_;  // not passed to zlib yet, whose sizes have 32 bits
  bool ready_ = false;      // zlib is initialized
  bool ended_ = false;
};

// Returns all decompressed data, or OutOfRange if it is larger than `max_bytes`.
absl::StatusOr<std::string> GunzipAll(absl::string_view compressed, int64_t max_bytes);

}  // namespace muster::data
