// A data set of two IDX files: inputs and targets.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/idx/idx_file.h"

namespace muster::data {

// Converts bytes to float32 with a table; keeps other element types. An image [height, width]
// becomes [1, height, width]. Integer targets become int64 and must not be negative;
// floating-point targets become float32, a single one with the shape [1].
class IdxDataset : public Dataset {
 public:
  using Table = std::array<float, 256>;

  struct Options {
    Table table;           // the value of each byte
    int64_t examples = 0;  // upper limit; 0: all
    int64_t classes = 0;   // exclusive limit of targets; 0: one more than the largest
  };

  // Takes the paths without .gz. Returns InvalidArgument if the files have different numbers of
  // examples, or none.
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
  std::unique_ptr<IdxFile> labels_;  // null after LoadTargets()
  Table table_;
  int64_t size_;
  Feature inputs_;
  Feature targets_;
  int64_t classes_;
  // The targets: one of the two is empty.
  std::vector<int64_t> whole_;
  std::vector<float> fractions_;
};

}  // namespace muster::data
