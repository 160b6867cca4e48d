// Decodes the protobuf wire format without generated classes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/string_view.h"

namespace muster::base {

static_assert(std::endian::native == std::endian::little);

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// Reads a message field by field: Tag(), then the method of that wire type or Skip(), until done().
// Every method returns false for malformed bytes; the reader must not be used after that. Does not
// copy: `bytes` must outlive the reader and the views it returns.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return next_ == end_; }

  // Field numbers have 29 bits; 0 is invalid.
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
    // As protobuf does, accepts lengths of at most five bytes, padding included.
    if (!Varint(length) || next_ - start > 5) return false;
    if (length > static_cast<uint64_t>(end_ - next_)) return false;
    bytes = {next_, static_cast<size_t>(length)};
    next_ += length;
    return true;
  }

  bool Float(float& value) { return Fixed(value); }
  bool Double(double& value) { return Fixed(value); }

  // Skips the value of a field. Groups, which are deprecated, count as malformed.
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
  template <typename T>
  bool Fixed(T& value) {
    if (end_ - next_ < static_cast<ptrdiff_t>(sizeof(value))) return false;
    std::memcpy(&value, next_, sizeof(value));
    next_ += sizeof(value);
    return true;
  }

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

// Calls visit(reader, field, type) for each field of a message. `visit` must read or skip the value
// and return true, or return false to end the visit. Returns false if it did, or if the message is
// malformed. Inlined, since callers decode millions of records.
template <typename Visit>
inline bool VisitFields(absl::string_view message, Visit visit) {
  WireReader reader(message);
  uint32_t field = 0;
  uint32_t type = 0;
  while (!reader.done()) {
    if (!reader.Tag(field, type) || !visit(reader, field, type)) return false;
  }
  return true;
}

}  // namespace muster::base
