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

// The check sum of a file that is read piece by piece, in any order. Thread-safe.
class RangeSums {
 public:
  explicit RangeSums(int64_t size) : size_(size) {}

  // That of the whole, each time that all of it has come; pieces that overlap with others, or are
  // too many, do not count.
  std::optional<uint32_t> Add(int64_t offset, absl::string_view bytes);

 private:
  struct Range {
    int64_t end = 0;
    uint32_t crc = 0;
  };

  const int64_t size_;
  absl::Mutex mutex_;
  std::map<int64_t, Range> ranges_ ABSL_GUARDED_BY(mutex_);  // by their begin; none touch
};

// Bound to the generation that was opened. Who reads all of it, at once or in pieces, has it
// checked: DataLoss when it is not what the server has a check sum of.
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
