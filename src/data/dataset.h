// A finite set of examples that can be read in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/input/batch.h"

namespace muster::data {

// The limit for one example; OpenDataset() rejects larger ones.
constexpr int64_t kMaxFeatureBytes = int64_t{1} << 30;

// Never empty. Immutable, hence thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual Feature inputs() const = 0;
  virtual Feature targets() const = 0;
  // Targets are whole numbers from 0 to classes() - 1; 0 if this is not a classification.
  virtual int64_t classes() const = 0;
  // Inputs are ids from 0 to vocabulary() - 1; 0 if inputs are not ids.
  virtual int64_t vocabulary() const { return 0; }
  // Returns remarks for the user, such as skipped damage: one sentence each.
  virtual std::vector<std::string> notes() const { return {}; }

  // Reads these examples into `out`, in this order. Reuses its memory and keeps its position.
  // Returns InvalidArgument for an index out of range, DataLoss or Unavailable if the data cannot
  // be read; the content of `out` is then undefined.
  virtual absl::Status Read(absl::Span<const int64_t> indices, Batch& out) const = 0;

 protected:
  // Checks the indices and makes room in `out`. Every Read() begins with it.
  absl::Status Prepare(absl::Span<const int64_t> indices, Batch& out) const;
};

}  // namespace muster::data
