// The body of a PUSH: encoded by training tasks, decoded by parameter servers. The one place that
// defines its layout; see docs/formats/parameter-server.md.
//
//   dense bucket   elements, in `precision`
//   table          `count` row numbers (int64) | the rows' gradients, in `precision`
//   buffers        their bytes
//   skipped        empty
//
// Numbers are little-endian, without padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "train/core/optimizer_kernels.h"
#include "train/core/placement.h"
#include "train/wire/message.h"

namespace muster::train {

// The fields of a PUSH frame that describe its payload, and the payload.
struct EncodedPush {
  wire::Frame::Precision precision = wire::Frame::FLOAT32;
  int64_t count = 0;  // rows of a table
  bool skipped = false;
  std::vector<wire::Chunk> payload = {};

  void WriteTo(wire::Outgoing& message) &&;
};

// Encodes the gradient of a dense bucket. `pieces` holds its elements as float32, in order.
// float32 is sent from where it is; a smaller precision is packed into new memory.
EncodedPush EncodeDense(wire::Frame::Precision precision, std::vector<wire::Chunk> pieces);

// Encodes gradients of rows of a table: `width` floats for each of `rows`, row by row. The row
// numbers on the wire are relative to `first_row`, the first row that the server holds.
EncodedPush EncodeRows(wire::Frame::Precision precision, absl::Span<const int64_t> rows,
                       int64_t first_row, const float* gradients, int64_t width);

// Encodes the model's buffers, without a copy.
EncodedPush EncodeBuffers(std::shared_ptr<const std::vector<std::byte>> bytes);

// Encodes that the task leaves its gradient of the bucket out.
EncodedPush EncodeSkipped();

// Returns the payload size that `frame`, a PUSH to a shard of this shape, must have, or
// InvalidArgument if its bucket, precision or count does not exist there.
absl::StatusOr<int64_t> PushBytes(const ShardShape& shape, const wire::Frame& frame);

// Reads the gradient of a dense bucket where it arrived; elements are converted as they are read.
class DensePush final : public Gradient {
 public:
  // REQUIRES: `payload` has the size that PushBytes() returns, and outlives this object.
  DensePush(const wire::Payload& payload, wire::Frame::Precision precision)
      : pieces_(payload.pieces()), precision_(precision) {}
  const float* Next(int64_t n, float* room) override;

 private:
  // Returns the next `size` bytes in place if they lie in one piece at `alignment`, else copies
  // them to `room`.
  const void* Take(size_t size, size_t alignment, void* room);

  absl::Span<const wire::Chunk> pieces_;
  const wire::Frame::Precision precision_;
  size_t offset_ = 0;  // into pieces_.front()
};

// The decoded gradients of rows of a table. Keeps the payload's memory alive.
class RowsPush {
 public:
  RowsPush() = default;
  // REQUIRES: `payload` has the size that PushBytes() returns.
  RowsPush(const wire::Payload& payload, wire::Frame::Precision precision, int64_t count,
           int64_t width);

  // Row numbers within the server's part of the table, as received: not checked.
  absl::Span<const int64_t> rows() const;
  const float* gradients() const;

 private:
  wire::Chunk bytes_;
  int64_t count_ = 0;
  std::vector<float> converted_;  // empty: the payload holds floats
};

}  // namespace muster::train
