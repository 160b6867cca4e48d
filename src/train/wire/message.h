// One message between a task and a parameter server: a frame that says what it is, and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"

namespace muster::train::wire {

// Bytes that are sent from where they are. `owner` keeps them there until they were sent.
struct Chunk {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

// Bytes that arrived, contiguous. Freed with the last copy.
class Payload {
 public:
  Payload() = default;
  Payload(const std::byte* data, size_t size, std::shared_ptr<const void> owner)
      : data_(data), size_(size), owner_(std::move(owner)) {}

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // The bytes as elements of T; they need not be aligned for it.
  template <typename T>
  size_t count() const {
    return size_ / sizeof(T);
  }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> owner_;
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
