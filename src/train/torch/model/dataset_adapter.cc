#include "train/torch/model/dataset_adapter.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/open.h"
#include "train/torch/tensors.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

at::Tensor ToTensor(data::Column&& column) {
  const auto owner = std::make_shared<data::Column>(std::move(column));
  return at::from_blob(
      owner->data(), owner->shape, [owner](void*) {},
      at::TensorOptions(ScalarTypeOf(owner->dtype)));
}

absl::StatusOr<data::Feature> FeatureOf(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined() || tensor.dim() == 0 || tensor.numel() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", what, " are empty; give a tensor with the example as first dimension"));
  }
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " must be a dense tensor in main memory"));
  }
  const absl::StatusOr<base::DType> dtype = DTypeOf(tensor.scalar_type());
  if (!dtype.ok()) return base::Annotate(dtype.status(), absl::StrCat("the ", what));
  return data::Feature{*dtype, tensor.sizes().slice(1).vec()};
}

// Returns the number of ids if the values are ids (0, 1, …), else 0.
int64_t CountOfIds(const at::Tensor& values) {
  if (at::isFloatingType(values.scalar_type())) {
    const bool is_binary = ((values == 0) | (values == 1)).all().item<bool>();
    return is_binary ? 2 : 0;
  }
  if (values.scalar_type() == at::kBool) return 2;
  return values.min().item<int64_t>() < 0 ? 0 : values.max().item<int64_t>() + 1;
}

// The properties that must be equal for every split.
struct Kind {
  data::Feature inputs;
  data::Feature targets;
  int64_t classes = 0;
  int64_t vocabulary = 0;
};

class TensorDataset : public data::Dataset {
 public:
  TensorDataset(const Batch& tensors, Kind kind)
      : inputs_(tensors.inputs.detach().contiguous()),
        targets_(tensors.targets.detach().contiguous()),
        kind_(std::move(kind)) {}

  int64_t size() const override { return inputs_.size(0); }
  data::Feature inputs() const override { return kind_.inputs; }
  data::Feature targets() const override { return kind_.targets; }
  int64_t classes() const override { return kind_.classes; }
  int64_t vocabulary() const override { return kind_.vocabulary; }

  absl::Status Read(absl::Span<const int64_t> indices, data::Batch& out) const override {
    MUSTER_RETURN_IF_ERROR(Prepare(indices, out));
    Gather(inputs_, kind_.inputs.bytes(), indices, out.inputs.as<char>());
    Gather(targets_, kind_.targets.bytes(), indices, out.targets.as<char>());
    return absl::OkStatus();
  }

 private:
  static void Gather(const at::Tensor& from, int64_t bytes, absl::Span<const int64_t> indices,
                     char* to) {
    const auto* source = static_cast<const char*>(from.data_ptr());
    for (const int64_t index : indices) {
      std::memcpy(to, source + index * bytes, bytes);
      to += bytes;
    }
  }

  at::Tensor inputs_;
  at::Tensor targets_;
  Kind kind_;
};

absl::StatusOr<Kind> KindOf(const Batch& tensors, const std::string& split) {
  Kind kind;
  MUSTER_ASSIGN_OR_RETURN(kind.inputs, FeatureOf(tensors.inputs, split + " inputs"));
  MUSTER_ASSIGN_OR_RETURN(kind.targets, FeatureOf(tensors.targets, split + " targets"));
  if (tensors.inputs.size(0) != tensors.targets.size(0)) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", tensors.inputs.size(0), " ", split,
                                                   " inputs, but ", tensors.targets.size(0),
                                                   " targets; give one target for each input"));
  }
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    if (kind.targets.shape.empty()) kind.classes = CountOfIds(tensors.targets);
    if (kind.inputs.shape.size() == 1 && !IsFloating(kind.inputs.dtype)) {
      kind.vocabulary = CountOfIds(tensors.inputs);
    }
  }));
  return kind;
}

std::string Describe(const Kind& kind) {
  return absl::StrCat("inputs ", base::ToString(kind.inputs.shape), " of type ",
                      base::ToString(kind.inputs.dtype), " and targets ",
                      base::ToString(kind.targets.shape), " of type ",
                      base::ToString(kind.targets.dtype));
}

// Merges the kinds of both splits: the larger number of classes, or 0 if one has no classes.
absl::StatusOr<Kind> Join(const Kind& train, const Kind& test) {
  if (train.inputs != test.inputs || train.targets != test.targets) {
    return absl::InvalidArgumentError(
        absl::StrCat("training and test data differ: ", Describe(train), " versus ", Describe(test),
                     "; give both the same shapes and types"));
  }
  const auto join = [](int64_t a, int64_t b) { return a == 0 || b == 0 ? 0 : std::max(a, b); };
  Kind kind = train;
  kind.classes = join(train.classes, test.classes);
  kind.vocabulary = join(train.vocabulary, test.vocabulary);
  return kind;
}

absl::StatusOr<std::shared_ptr<const data::Dataset>> OpenTensors(const Batch& train,
                                                                 const Batch& test,
                                                                 const std::string& split) {
  MUSTER_ASSIGN_OR_RETURN(Kind kind, KindOf(train, "training"));
  if (test.inputs.defined()) {
    MUSTER_ASSIGN_OR_RETURN(const Kind test_kind, KindOf(test, "test"));
    MUSTER_ASSIGN_OR_RETURN(kind, Join(kind, test_kind));
  } else if (split != "train") {
    return absl::NotFoundError(
        absl::StrCat("there is no data for '", split, "'; give FromTensors test data as well"));
  }
  return std::make_shared<TensorDataset>(split == "train" ? train : test, kind);
}

}  // namespace

ModelInput InputOf(const data::Dataset& dataset, const std::string& loss) {
  const data::Feature inputs = dataset.inputs();
  const data::Feature targets = dataset.targets();
  return {.inputs = inputs.shape,
          .inputs_dtype = inputs.dtype,
          .targets = targets.shape,
          .targets_dtype = targets.dtype,
          .classes = dataset.classes(),
          .vocabulary = dataset.vocabulary(),
          .loss = loss};
}

Batch ToTensors(data::Batch&& batch) {
  return {ToTensor(std::move(batch.inputs)), ToTensor(std::move(batch.targets))};
}

DataFactory OpenData(const DataSource& source) {
  return [source](const std::string& split) {
    return data::OpenDataset({.format = source.format, .path = source.path, .split = split});
  };
}

DataFactory FromTensors(const Batch& train, const Batch& test) {
  return [train, test](const std::string& split) { return OpenTensors(train, test, split); };
}

}  // namespace muster::train
