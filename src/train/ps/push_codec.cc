#include "train/ps/push_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "train/core/half.h"

namespace muster::train {
namespace {

using wire::Frame;

size_t ElementBytes(Frame::Precision precision, int64_t elements) {
  return static_cast<size_t>(elements) * (precision == Frame::FLOAT32 ? 4 : 2);
}

size_t RowNumberBytes(int64_t rows) { return static_cast<size_t>(rows) * sizeof(int64_t); }

void Pack(Frame::Precision precision, const float* from, std::byte* to, int64_t n) {
  switch (precision) {
    case Frame::FLOAT16:
      return ToFloat16(from, to, n);
    case Frame::BFLOAT16:
      return ToBfloat16(from, to, n);
    default:
      if (n > 0) std::memcpy(to, from, ElementBytes(precision, n));
  }
}

// REQUIRES: `precision` is not FLOAT32.
void Unpack(Frame::Precision precision, const void* from, float* to, int64_t n) {
  (precision == Frame::FLOAT16 ? FromFloat16 : FromBfloat16)(from, to, n);
}

wire::Chunk ChunkOf(std::shared_ptr<const std::vector<std::byte>> bytes) {
  const std::byte* data = bytes->data();
  const size_t size = bytes->size();
  return {data, size, std::move(bytes)};
}

}  // namespace

void EncodedPush::WriteTo(wire::Outgoing& message) && {
  message.frame.set_precision(precision);
  message.frame.set_count(count);
  message.frame.set_skipped(skipped);
  message.payload = std::move(payload);
}

EncodedPush EncodeDense(Frame::Precision precision, std::vector<wire::Chunk> pieces) {
  EncodedPush push{.precision = precision};
  if (precision == Frame::FLOAT32) {
    push.payload = std::move(pieces);
    return push;
  }
  int64_t elements = 0;
  for (const wire::Chunk& piece : pieces) {
    elements += static_cast<int64_t>(piece.size / sizeof(float));
  }
  auto packed = std::make_shared<std::vector<std::byte>>(ElementBytes(precision, elements));
  std::byte* to = packed->data();
  for (const wire::Chunk& piece : pieces) {
    const auto n = static_cast<int64_t>(piece.size / sizeof(float));
    Pack(precision, static_cast<const float*>(piece.data), to, n);
    to += ElementBytes(precision, n);
  }
  push.payload.push_back(ChunkOf(std::move(packed)));
  return push;
}

EncodedPush EncodeRows(Frame::Precision precision, absl::Span<const int64_t> rows,
                       int64_t first_row, const float* gradients, int64_t width) {
  const auto count = static_cast<int64_t>(rows.size());
  auto packed = std::make_shared<std::vector<std::byte>>(RowNumberBytes(count) +
                                                         ElementBytes(precision, count * width));
  // The allocation is aligned for int64_t, and the row numbers come first.
  auto* numbers = reinterpret_cast<int64_t*>(packed->data());
  for (const int64_t row : rows) *numbers++ = row - first_row;
  Pack(precision, gradients, packed->data() + RowNumberBytes(count), count * width);
  EncodedPush push{.precision = precision, .count = count};
  push.payload.push_back(ChunkOf(std::move(packed)));
  return push;
}

EncodedPush EncodeBuffers(std::shared_ptr<const std::vector<std::byte>> bytes) {
  EncodedPush push;
  push.payload.push_back(ChunkOf(std::move(bytes)));
  return push;
}

EncodedPush EncodeSkipped() { return {.skipped = true}; }

absl::StatusOr<int64_t> PushBytes(const ShardShape& shape, const Frame& frame) {
  const auto bucket = static_cast<int>(frame.bucket());
  if (frame.bucket() >= static_cast<uint32_t>(shape.bucket_count())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no bucket ", frame.bucket()));
  }
  if (!Frame::Precision_IsValid(frame.precision())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no precision ", frame.precision()));
  }
  size_t bytes = static_cast<size_t>(shape.buffer_bytes);
  if (shape.is_dense(bucket)) {
    bytes = ElementBytes(frame.precision(), shape.buckets[bucket].elements);
  } else if (shape.is_table(bucket)) {
    const Table& table = shape.tables[bucket - shape.table_bucket(0)];
    if (frame.count() < 0 || frame.count() > table.rows) {
      return absl::InvalidArgumentError(
          absl::StrCat(frame.count(), " rows of a table of ", table.rows));
    }
    bytes = RowNumberBytes(frame.count()) +
            ElementBytes(frame.precision(), frame.count() * table.width);
  }
  return frame.skipped() ? 0 : static_cast<int64_t>(bytes);
}

const void* DensePush::Take(size_t size, size_t alignment, void* room) {
  auto* out = static_cast<std::byte*>(room);
  const void* taken = room;
  for (size_t left = size; left > 0;) {
    const wire::Chunk& piece = pieces_.front();
    const std::byte* from = static_cast<const std::byte*>(piece.data) + offset_;
    const size_t n = std::min(left, piece.size - offset_);
    // True in the first round only: the bytes that follow a partial copy never make up `size`.
    const bool in_place = n == size && reinterpret_cast<uintptr_t>(from) % alignment == 0;
    if (in_place) {
      taken = from;
    } else {
      std::memcpy(out + (size - left), from, n);
    }
    left -= n;
    offset_ += n;
    if (offset_ == piece.size) {
      pieces_.remove_prefix(1);
      offset_ = 0;
    }
  }
  return taken;
}

const float* DensePush::Next(int64_t n, float* room) {
  const size_t bytes = ElementBytes(precision_, n);
  if (precision_ == Frame::FLOAT32) {
    return static_cast<const float*>(Take(bytes, alignof(float), room));
  }
  std::byte packed[kMaxElements * sizeof(uint16_t)];
  Unpack(precision_, Take(bytes, 1, packed), room, n);
  return room;
}

RowsPush::RowsPush(const wire::Payload& payload, Frame::Precision precision, int64_t count,
                   int64_t width)
    : bytes_(payload.InOnePiece()), count_(count) {
  if (precision == Frame::FLOAT32) return;
  std::vector<float> converted(static_cast<size_t>(count * width));
  Unpack(precision, gradients(), converted.data(), count * width);
  converted_ = std::move(converted);
}

absl::Span<const int64_t> RowsPush::rows() const {
  // InOnePiece() aligns the payload for any type.
  return {static_cast<const int64_t*>(bytes_.data), static_cast<size_t>(count_)};
}

const float* RowsPush::gradients() const {
  if (!converted_.empty()) return converted_.data();
  // The gradients follow the row numbers: one int64 takes the room of two floats.
  constexpr int64_t kFloatsPerRowNumber = sizeof(int64_t) / sizeof(float);
  return static_cast<const float*>(bytes_.data) + count_ * kFloatsPerRowNumber;
}

}  // namespace muster::train
