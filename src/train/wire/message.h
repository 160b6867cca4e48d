// A message between tasks: a frame that describes it, and a payload of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"

namespace muster::train::wire {

// A view of bytes. `owner` keeps them alive; null means that the caller does.
struct Chunk {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// The received bytes, in the pieces in which they arrived.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::vector<Chunk> pieces);

  size_t size() const { return size_; }
  absl::Span<const Chunk> pieces() const { return pieces_; }
  // Copies `size` bytes from `offset` on. REQUIRES: offset + size <= size().
  void Copy(size_t offset, size_t size, void* to) const;
  // Returns all bytes contiguous and aligned for any type: in place if possible, else a copy.
  Chunk InOnePiece() const;

 private:
  std::vector<Chunk> pieces_;
  size_t size_ = 0;
};

struct Outgoing {
  Frame frame;
  std::vector<Chunk> payload = {};
};

struct Incoming {
  Frame frame;
  Payload payload;
};

}  // namespace muster::train::wire
