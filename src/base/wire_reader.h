// Reads messages as protobuf encodes them, without their classes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/string_view.h"

namespace muster {

static_assert(std::endian::native == std::endian::little);

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// A message, field by field. Every method returns false for bytes that are no message, and nothing
// may be asked afterwards.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return next_ == end_; }

  // The fields' numbers have 29 bits; 0 is none.
  bool Tag(uint32_t& field, uint32_t& type) {
    uint64_t tag = 0;
    if (!Varint(tag) || tag > std::numeric_limits<uint32_t>::max()) return false;
    field = static_cast<uint32_t>(tag) >> 3;
    type = static_cast<uint32_t>(tag) & 7;
    return field != 0;
  }

  bool Varint(uint64_t& value) {
    if (next_ != end_ && static_cast<signed char>(*next_) >= 0) {
      value = static_cast<unsigned char>(*next_++);
      return true;
    }
    return LongVarint(value);
  }

  bool Bytes(absl::string_view& bytes) {
    uint64_t length = 0;
    const char* start = next_;
    // Others read lengths of five bytes at most, however they are padded.
    if (!Varint(length) || next_ - start > 5) return false;
    if (length > static_cast<uint64_t>(end_ - next_)) return false;
    bytes = {next_, static_cast<size_t>(length)};
    next_ += length;
    return true;
  }

  bool Float(float& value) {
    if (end_ - next_ < static_cast<ptrdiff_t>(sizeof(value))) return false;
    std::memcpy(&value, next_, sizeof(value));
    next_ += sizeof(value);
    return true;
  }

  // Groups, which nobody writes any more, are not skipped.
  bool Skip(uint32_t type) {
    uint64_t number = 0;
    absl::string_view bytes;
    switch (type) {
      case kVarint:
        return Varint(number);
      case kLengthDelimited:
        return Bytes(bytes);
      case kFixed64:
        return Advance(8);
      case kFixed32:
        return Advance(4);
      default:
        return false;
    }
  }

 private:
  bool LongVarint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (next_ == end_) return false;
      const auto byte = static_cast<unsigned char>(*next_++);
      if (shift == 63 && byte > 1) return false;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Advance(ptrdiff_t bytes) {
    if (end_ - next_ < bytes) return false;
    next_ += bytes;
    return true;
  }

  const char* next_;
  const char* end_;
};

}  // namespace muster
