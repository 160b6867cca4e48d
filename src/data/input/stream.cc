#include "data/input/stream.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/input/permutation.h"
#include "data/input/prefetch.h"

namespace muster::data {
namespace {

constexpr int kMaxPrefetch = 10'000;
constexpr int kMaxThreads = 256;

absl::Status CheckDataset(const Dataset* dataset) {
  if (dataset == nullptr) return absl::InvalidArgumentError("there is no data set to read");
  if (dataset->size() < 1) {
    return absl::InvalidArgumentError("the data set is empty; give one with at least one example");
  }
  return absl::OkStatus();
}

absl::Status CheckCount(absl::string_view name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be a whole number from ", min, " to ", max, ", not ", value));
}

absl::Status Check(const Dataset* dataset, const StreamOptions& options) {
  MUSTER_RETURN_IF_ERROR(CheckDataset(dataset));
  MUSTER_RETURN_IF_ERROR(CheckCount("batch_size", options.batch_size, 1, INT64_MAX));
  MUSTER_RETURN_IF_ERROR(CheckCount("world", options.world, 1, INT32_MAX));
  MUSTER_RETURN_IF_ERROR(CheckCount("rank", options.rank, 0, options.world - 1));
  MUSTER_RETURN_IF_ERROR(CheckCount("base", options.base, 0, INT64_MAX));
  MUSTER_RETURN_IF_ERROR(CheckCount("prefetch", options.prefetch, 0, kMaxPrefetch));
  MUSTER_RETURN_IF_ERROR(CheckCount("threads", options.threads, 1, kMaxThreads));
  if (options.batch_size <= dataset->size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'batch_size' is ", options.batch_size, ", but the data set has only ", dataset->size(),
      " examples; set 'batch_size' to at most ", dataset->size(), ", or use more data"));
}

// Maps the batches of a task to examples.
class Order {
 public:
  Order(int64_t size, StreamOptions options) : size_(size), options_(options) {}

  // Returns the global position of a batch, or OutOfRange if it exceeds 64 bits.
  absl::StatusOr<int64_t> PositionOf(int64_t sequence) const {
    int64_t position = 0;
    int64_t end = 0;
    if (__builtin_mul_overflow(sequence, int64_t{options_.world}, &position) ||
        __builtin_add_overflow(position, int64_t{options_.rank}, &position) ||
        __builtin_mul_overflow(position, options_.batch_size, &position) ||
        __builtin_add_overflow(position, options_.base, &position) ||
        __builtin_add_overflow(position, options_.batch_size, &end)) {
      return absl::OutOfRangeError(
          absl::StrCat("the position of batch ", sequence, " exceeds 64 bits"));
    }
    return position;
  }

  std::vector<int64_t> IndicesFrom(int64_t position) const {
    std::vector<int64_t> indices;
    indices.reserve(static_cast<size_t>(options_.batch_size));
    const int64_t end = position + options_.batch_size;
    while (position < end) {  // once an epoch
      const int64_t epoch = position / size_;
      const Permutation order(size_, options_.seed, static_cast<uint64_t>(epoch));
      int64_t offset = position % size_;
      const int64_t count = std::min(end - position, size_ - offset);
      position += count;
      for (const int64_t stop = offset + count; offset < stop; ++offset) {
        indices.push_back(options_.shuffle ? order(offset) : offset);
      }
    }
    return indices;
  }

 private:
  int64_t size_;
  StreamOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchStream>> TrainStream(std::shared_ptr<const Dataset> dataset,
                                                         StreamOptions options) {
  MUSTER_RETURN_IF_ERROR(Check(dataset.get(), options));
  const Order order(dataset->size(), options);
  auto make = [dataset = std::move(dataset), order](int64_t sequence) -> absl::StatusOr<Batch> {
    Batch batch;
    MUSTER_ASSIGN_OR_RETURN(batch.position, order.PositionOf(sequence));
    MUSTER_RETURN_IF_ERROR(dataset->Read(order.IndicesFrom(batch.position), batch));
    return batch;
  };
  return std::make_unique<Prefetcher>(std::move(make), options.prefetch, options.threads);
}

absl::StatusOr<std::unique_ptr<BatchStream>> EvalStream(std::shared_ptr<const Dataset> dataset,
                                                        int64_t batch_size, int prefetch) {
  MUSTER_RETURN_IF_ERROR(CheckDataset(dataset.get()));
  MUSTER_RETURN_IF_ERROR(CheckCount("batch_size", batch_size, 1, INT64_MAX));
  MUSTER_RETURN_IF_ERROR(CheckCount("prefetch", prefetch, 0, kMaxPrefetch));
  auto make = [dataset = std::move(dataset),
               batch_size](int64_t sequence) -> absl::StatusOr<Batch> {
    const int64_t size = dataset->size();
    Batch batch;
    if (__builtin_mul_overflow(sequence, batch_size, &batch.position) || batch.position >= size) {
      return absl::OutOfRangeError(absl::StrCat("the data set ends after ", size, " examples"));
    }
    std::vector<int64_t> indices(static_cast<size_t>(std::min(batch_size, size - batch.position)));
    std::iota(indices.begin(), indices.end(), batch.position);
    MUSTER_RETURN_IF_ERROR(dataset->Read(indices, batch));
    return batch;
  };
  return std::make_unique<Prefetcher>(std::move(make), prefetch, 1);
}

}  // namespace muster::data
