// One message between a task and a parameter server: a frame that says what it is, and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"

namespace muster::train::wire {

// Some bytes, where they are. `owner` keeps them there.
struct Chunk {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// Bytes that arrived, in the pieces in which they came.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::vector<Chunk> pieces);

  size_t size() const { return size_; }
  absl::Span<const Chunk> pieces() const { return pieces_; }
  // The bytes from `offset` on; so many must be there.
  void Copy(size_t offset, size_t size, void* to) const;
  // All of them together, aligned for any type: as they are if they lie so, otherwise a copy.
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
