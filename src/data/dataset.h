// A finite set of examples that can be read in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "data/batch.h"

namespace muster::data {

// What one example may take at most; OpenDataset refuses larger ones.
constexpr int64_t kMaxFeatureBytes = int64_t{1} << 30;

// Never empty. All methods are const and may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual Feature inputs() const = 0;
  virtual Feature targets() const = 0;
  // Targets are whole numbers from 0 to classes() - 1; 0: not a classification.
  virtual int64_t classes() const = 0;
  // Inputs are ids from 0 to vocabulary() - 1; 0: inputs are no ids.
  virtual int64_t vocabulary() const { return 0; }
  // What a user should be told, such as damage that was left out: a sentence each.
  virtual std::vector<std::string> notes() const { return {}; }

  // Puts these examples into `out`, in this order; its memory is used again, its position is left
  // alone. InvalidArgument for an index that is not there, DataLoss or Unavailable when the data
  // cannot be read; `out` then holds nothing of use.
  virtual absl::Status Read(absl::Span<const int64_t> indices, Batch& out) const = 0;

 protected:
  // The beginning of every Read: checks the indices and makes room for them.
  absl::Status Prepare(absl::Span<const int64_t> indices, Batch& out) const;
};

}  // namespace muster::data
