#include "data/dataset.h"

#include "absl/strings/str_cat.h"

namespace muster::data {

absl::Status Dataset::Prepare(absl::Span<const int64_t> indices, Batch& out) const {
  const int64_t examples = size();
  for (const int64_t index : indices) {
    if (index >= 0 && index < examples) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("there is no example ", index, " in a data set of ", examples, " examples"));
  }
  out.size = static_cast<int64_t>(indices.size());
  out.inputs.Reset(inputs(), out.size);
  out.targets.Reset(targets(), out.size);
  return absl::OkStatus();
}

}  // namespace muster::data
