// A pair of IDX files, inputs and targets.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/idx_file.h"

namespace muster::data {

// Bytes become float32 through a table; other elements stay what they are. What images are made of,
// [height, width], gets a channel: [1, height, width]. Whole numbers as targets become int64 and
// must not be negative; fractions become float32, and a single one has the shape [1].
class IdxDataset : public Dataset {
 public:
  using Table = std::array<float, 256>;

  struct Options {
    Table table;           // what each byte means
    int64_t examples = 0;  // the first so many at most; 0 = all
    int64_t classes = 0;   // targets must be below; 0 = one more than the largest
  };

  // `images` and `labels` without the .gz that they may end in. InvalidArgument when they do not
  // fit together or hold nothing.
  static absl::StatusOr<std::shared_ptr<const Dataset>> Open(const std::string& images,
                                                             const std::string& labels,
                                                             const Options& options);

  int64_t size() const override { return size_; }
  Feature inputs() const override { return inputs_; }
  Feature targets() const override { return targets_; }
  int64_t classes() const override { return classes_; }
  absl::Status Read(absl::Span<const int64_t> indices, Batch& out) const override;

 private:
  IdxDataset(std::unique_ptr<IdxFile> images, std::unique_ptr<IdxFile> labels,
             const Options& options);
  absl::Status LoadTargets();
  absl::Status LoadWholeNumbers();
  absl::Status ReadInputs(absl::Span<const int64_t> indices, Batch& out) const;

  std::unique_ptr<IdxFile> images_;
  std::unique_ptr<IdxFile> labels_;  // until they are loaded
  Table table_;
  int64_t size_;
  Feature inputs_;
  Feature targets_;
  int64_t classes_;
  std::vector<int64_t> whole_;  // the targets, one or the other
  std::vector<float> fractions_;
};

}  // namespace muster::data
