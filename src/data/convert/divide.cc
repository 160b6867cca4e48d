// Divides one source among several splits.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "data/convert/convert.h"
#include "data/input/permutation.h"

namespace muster::data {
namespace {

// The assignment of examples to splits depends only on their number and the shares.
constexpr uint64_t kDivisionSeed = 0x5eed;

class Part : public ExampleSource {
 public:
  Part(std::shared_ptr<ExampleSource> whole, std::vector<int64_t> indices, bool has_note)
      : whole_(std::move(whole)), indices_(std::move(indices)), has_note_(has_note) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  absl::StatusOr<std::string> Example(int64_t index) override {
    return whole_->Example(indices_[static_cast<size_t>(index)]);
  }
  std::vector<std::string> class_names() const override { return whole_->class_names(); }
  std::vector<std::string> LabelsBeyond(const std::vector<std::string>& classes) const override {
    return whole_->LabelsBeyond(classes);
  }
  void UseClasses(const std::vector<std::string>& classes) override { whole_->UseClasses(classes); }
  absl::StatusOr<std::vector<FeatureScale>> ComputeScales(
      const std::vector<int64_t>* /*indices*/) override {
    return whole_->ComputeScales(&indices_);
  }
  absl::Status UseScales(const std::vector<FeatureScale>& scales) override {
    return whole_->UseScales(scales);
  }
  std::string features() const override { return whole_->features(); }
  std::string note() const override { return has_note_ ? whole_->note() : ""; }

 private:
  const std::shared_ptr<ExampleSource> whole_;
  const std::vector<int64_t> indices_;
  const bool has_note_;  // true for one split, so that the note is printed once
};

}  // namespace

absl::StatusOr<std::vector<SplitSource>> Divide(std::unique_ptr<ExampleSource> source,
                                                const std::vector<SplitShare>& shares) {
  const std::shared_ptr<ExampleSource> whole = std::move(source);
  const int64_t size = whole->size();
  const Permutation order(size, kDivisionSeed, /*epoch=*/0);
  std::vector<SplitSource> parts;
  double share = 0;
  int64_t begin = 0;
  for (const SplitShare& wanted : shares) {
    share += wanted.fraction;
    const bool last = parts.size() + 1 == shares.size();
    const int64_t end =
        last ? size : std::llround(std::min(share, 1.0) * static_cast<double>(size));
    if (end <= begin) {
      return absl::InvalidArgumentError(absl::StrCat("--split: of ", size, " examples, ",
                                                     wanted.split, "=", wanted.fraction,
                                                     " has none; give it a larger share"));
    }
    std::vector<int64_t> indices;
    for (int64_t i = begin; i < end; ++i) indices.push_back(order(i));
    std::sort(indices.begin(), indices.end());
    parts.push_back(
        {wanted.split, std::make_unique<Part>(whole, std::move(indices), parts.empty())});
    begin = end;
  }
  return parts;
}

}  // namespace muster::data
