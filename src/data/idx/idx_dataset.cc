#include "data/idx/idx_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::data {
namespace {

// Limits the memory for targets, at eight bytes each.
constexpr int64_t kMaxTargets = int64_t{1} << 30;

Feature InputsOf(const IdxFile& file) {
  Feature feature{file.dtype(), file.shape()};
  if (feature.dtype == base::DType::kUint8) feature.dtype = base::DType::kFloat32;
  if (feature.shape.size() == 2) feature.shape.insert(feature.shape.begin(), 1);
  if (feature.shape.empty()) feature.shape = {1};
  return feature;
}

bool IsFraction(base::DType dtype) {
  return dtype == base::DType::kFloat32 || dtype == base::DType::kFloat64;
}

// Returns one element of an IDX file as T.
template <typename T>
T Element(base::DType dtype, const char* bytes) {
  const auto as = [bytes]<typename From>(From value) {
    std::memcpy(&value, bytes, sizeof(value));
    return static_cast<T>(value);
  };
  switch (dtype) {
    case base::DType::kInt8:
      return as(int8_t{});
    case base::DType::kInt16:
      return as(int16_t{});
    case base::DType::kInt32:
      return as(int32_t{});
    case base::DType::kFloat32:
      return as(float{});
    case base::DType::kFloat64:
      return as(double{});
    default:
      return as(uint8_t{});
  }
}

// Reads the elements of the first `size` examples in pieces.
template <typename T>
absl::StatusOr<std::vector<T>> LoadElements(const IdxFile& file, int64_t size) {
  constexpr int64_t kPiece = 4096;
  const int64_t width = base::SizeOf(file.dtype());
  const int64_t per_example = base::ElementsOf(file.shape());
  std::vector<T> elements;
  elements.reserve(static_cast<size_t>(size * per_example));
  const int64_t step = std::max<int64_t>(1, kPiece / per_example);
  std::string bytes(static_cast<size_t>(step * file.example_bytes()), '\0');
  for (int64_t first = 0; first < size; first += step) {
    const int64_t count = std::min(step, size - first);
    MUSTER_RETURN_IF_ERROR(file.Read(first, count, bytes.data()));
    for (int64_t i = 0; i < count * per_example; ++i) {
      elements.push_back(Element<T>(file.dtype(), bytes.data() + i * width));
    }
  }
  return elements;
}

}  // namespace

IdxDataset::IdxDataset(std::unique_ptr<IdxFile> images, std::unique_ptr<IdxFile> labels,
                       const Options& options)
    : images_(std::move(images)),
      labels_(std::move(labels)),
      table_(options.table),
      size_(images_->size()),
      inputs_(InputsOf(*images_)),
      classes_(options.classes) {
  if (options.examples > 0) size_ = std::min(size_, options.examples);
}

absl::StatusOr<std::shared_ptr<const Dataset>> IdxDataset::Open(const std::string& images,
                                                                const std::string& labels,
                                                                const Options& options) {
  MUSTER_ASSIGN_OR_RETURN(IdxPair pair, OpenIdxPair(images, labels));
  std::shared_ptr<IdxDataset> dataset(
      new IdxDataset(std::move(pair.images), std::move(pair.labels), options));
  MUSTER_RETURN_IF_ERROR(dataset->LoadTargets());
  return dataset;
}

absl::Status IdxDataset::LoadTargets() {
  if (base::ElementsOf(labels_->shape()) > kMaxTargets / size_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(labels_->path(), " has more than ", kMaxTargets,
                     " targets, which are kept in memory; set 'examples' to use fewer of them"));
  }
  targets_.shape = labels_->shape();
  if (!IsFraction(labels_->dtype())) {
    MUSTER_RETURN_IF_ERROR(LoadWholeNumbers());
  } else {
    targets_.dtype = base::DType::kFloat32;
    classes_ = 0;
    if (targets_.shape.empty()) targets_.shape = {1};
    MUSTER_ASSIGN_OR_RETURN(fractions_, LoadElements<float>(*labels_, size_));
  }
  labels_.reset();
  return absl::OkStatus();
}

absl::Status IdxDataset::LoadWholeNumbers() {
  targets_.dtype = base::DType::kInt64;
  MUSTER_ASSIGN_OR_RETURN(whole_, LoadElements<int64_t>(*labels_, size_));
  const int64_t limit = classes_ > 0 ? classes_ : int64_t{INT32_MAX} + 1;
  int64_t largest = 0;
  for (size_t i = 0; i < whole_.size(); ++i) {
    largest = std::max(largest, whole_[i]);
    if (whole_[i] >= 0 && whole_[i] < limit) continue;
    return absl::DataLossError(
        absl::StrCat(labels_->path(), ": the target of example ",
                     static_cast<int64_t>(i) / base::ElementsOf(targets_.shape), " is ", whole_[i],
                     "; targets are whole numbers from 0 to ", limit - 1));
  }
  if (classes_ == 0) classes_ = largest + 1;
  return absl::OkStatus();
}

absl::Status IdxDataset::ReadInputs(absl::Span<const int64_t> indices, Batch& out) const {
  const int64_t bytes = images_->example_bytes();
  if (images_->dtype() != base::DType::kUint8) {
    char* to = out.inputs.as<char>();
    for (size_t i = 0; i < indices.size(); ++i, to += bytes) {
      MUSTER_RETURN_IF_ERROR(images_->Read(indices[i], 1, to));
    }
    return absl::OkStatus();
  }
  std::vector<uint8_t> pixels(static_cast<size_t>(bytes));
  float* to = out.inputs.as<float>();
  for (const int64_t index : indices) {
    MUSTER_RETURN_IF_ERROR(images_->Read(index, 1, pixels.data()));
    for (const uint8_t pixel : pixels) *to++ = table_[pixel];
  }
  return absl::OkStatus();
}

absl::Status IdxDataset::Read(absl::Span<const int64_t> indices, Batch& out) const {
  MUSTER_RETURN_IF_ERROR(Prepare(indices, out));
  MUSTER_RETURN_IF_ERROR(ReadInputs(indices, out));
  const int64_t elements = base::ElementsOf(targets_.shape);
  char* to = out.targets.as<char>();
  const int64_t bytes = targets_.bytes();
  const char* from = whole_.empty() ? reinterpret_cast<const char*>(fractions_.data())
                                    : reinterpret_cast<const char*>(whole_.data());
  for (const int64_t index : indices) {
    std::memcpy(to, from + index * elements * base::SizeOf(targets_.dtype),
                static_cast<size_t>(bytes));
    to += bytes;
  }
  return absl::OkStatus();
}

}  // namespace muster::data
