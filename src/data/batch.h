// One batch of examples, as the trainer takes it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/dtype.h"

namespace muster::data {

// What one example has: [] is a scalar.
struct Feature {
  DType dtype = DType::kFloat32;
  Shape shape;

  int64_t bytes() const { return ElementsOf(shape) * SizeOf(dtype); }
  friend bool operator==(const Feature&, const Feature&) = default;
};

// The values of one feature for all examples of a batch, densely, the batch being the first
// dimension. The memory begins at a multiple of 64 bytes and moves with the column.
struct Column {
  DType dtype = DType::kFloat32;
  Shape shape;

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
  int64_t bytes() const { return ElementsOf(shape) * SizeOf(dtype); }

  // Room for `count` examples; the values are not set. What is there is used again when it is large
  // enough. std::bad_alloc when there is no memory.
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
  int64_t position = 0;  // of its first example, counted over all tasks and epochs
  Column inputs;
  Column targets;
};

}  // namespace muster::data
