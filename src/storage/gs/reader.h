// Reads an object of Google Cloud Storage.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "storage/gs/client.h"
#include "storage/gs/object.h"
#include "storage/object_reader.h"

namespace muster::storage {

// Computes the checksum of a file that is read in pieces, in any order. Thread-safe.
class RangeSums {
 public:
  explicit RangeSums(int64_t size) : size_(size) {}

  // Adds a piece. Returns the checksum of the whole file each time that it is complete. Ignores
  // pieces that overlap others, and every piece once there are too many.
  std::optional<uint32_t> Add(int64_t offset, absl::string_view bytes);

 private:
  struct Range {
    int64_t end = 0;
    uint32_t crc = 0;
  };

  const int64_t size_;
  absl::Mutex mutex_;
  // Keyed by offset. Adjacent ranges are merged.
  std::map<int64_t, Range> ranges_ ABSL_GUARDED_BY(mutex_);
};

// Reads the generation that was opened. When all of the object has been read, in one or several
// pieces, checks it and returns DataLoss if its checksum differs from the server's.
class GsReader final : public ObjectReader {
 public:
  GsReader(GsClient& client, const GsObject& object)
      : ObjectReader(object.info.url, object.info.bytes),
        client_(client),
        generation_(object.generation),
        crc32c_(object.crc32c),
        sums_(object.info.bytes) {}

 private:
  absl::StatusOr<net::Response> Get(const std::string& range, net::BodySink& sink) override;
  absl::Status Check(int64_t offset, absl::string_view bytes) override;

  GsClient& client_;
  const std::string generation_;
  const std::optional<uint32_t> crc32c_;
  RangeSums sums_;
};

}  // namespace muster::storage
