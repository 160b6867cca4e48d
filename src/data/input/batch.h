// One batch of examples, the trainer's input.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/bytes/dtype.h"

namespace muster::data {

// The element type and shape of one example; the shape [] is a scalar.
struct Feature {
  base::DType dtype = base::DType::kFloat32;
  base::Shape shape;

  int64_t bytes() const { return base::ElementsOf(shape) * base::SizeOf(dtype); }
  friend bool operator==(const Feature&, const Feature&) = default;
};

// The values of one feature for all examples of a batch, dense, with the batch as the first
// dimension. The memory is aligned to 64 bytes and moves with the column.
struct Column {
  base::DType dtype = base::DType::kFloat32;
  base::Shape shape;

  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }
  template <typename T>
  T* as() {
    return static_cast<T*>(data());
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  int64_t bytes() const { return base::ElementsOf(shape) * base::SizeOf(dtype); }

  // Makes room for `count` examples, with undefined values. Reuses the memory if it is large
  // enough. Throws std::bad_alloc if out of memory.
  void Reset(const Feature& feature, int64_t count);

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  int64_t capacity_ = 0;
};

struct Batch {
  int64_t size = 0;
  int64_t position = 0;  // global position of its first example, over all tasks and epochs
  Column inputs;
  Column targets;
};

}  // namespace muster::data
