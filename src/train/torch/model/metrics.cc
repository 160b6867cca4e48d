#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/suggest.h"
#include "train/torch/model/losses.h"

namespace muster::train {
namespace {

using at::Tensor;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// A running mean; NaN if nothing was added.
class Mean {
 public:
  void Add(double sum, int64_t count) {
    sum_ += sum;
    count_ += count;
  }
  double Value() const { return count_ == 0 ? kNoValue : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

bool IsOneLogit(const Tensor& outputs) { return outputs.dim() < 2 || outputs.size(1) == 1; }

void CheckSameCount(const char* metric, const Tensor& outputs, const Tensor& targets) {
  TORCH_CHECK_VALUE(outputs.numel() == targets.numel(), "the metric ", metric,
                    " needs one target for each output; the model returns ", outputs.sizes(),
                    ", the targets are ", targets.sizes());
}

// Converts [batch, classes, …] and [batch, …] to [positions, classes] and [positions].
std::pair<Tensor, Tensor> ByPosition(const char* metric, const Tensor& outputs,
                                     const Tensor& targets) {
  TORCH_CHECK_VALUE(outputs.numel() == targets.numel() * outputs.size(1), "the metric ", metric,
                    " needs one class as target for each row of logits; the model returns ",
                    outputs.sizes(), ", the targets are ", targets.sizes());
  return {outputs.movedim(1, -1).reshape({-1, outputs.size(1)}),
          targets.reshape({-1}).to(at::kLong)};
}

class AccuracyMetric : public Metric {
 public:
  void Add(const Tensor& outputs, const Batch& batch) override {
    at::NoGradGuard no_grad;
    if (IsOneLogit(outputs)) {
      CheckSameCount("accuracy", outputs, batch.targets);
      const Tensor said_yes = outputs.reshape({-1}) > 0;
      AddHits(said_yes == (batch.targets.reshape({-1}) > 0.5));
    } else {
      const auto [logits, targets] = ByPosition("accuracy", outputs, batch.targets);
      AddHits(logits.argmax(1) == targets);
    }
  }
  double Value() const override { return mean_.Value(); }

 private:
  void AddHits(const Tensor& hits) { mean_.Add(hits.sum().item<double>(), hits.numel()); }

  Mean mean_;
};

class TopKMetric : public Metric {
 public:
  explicit TopKMetric(int k) : k_(k) {}

  void Add(const Tensor& outputs, const Batch& batch) override {
    at::NoGradGuard no_grad;
    TORCH_CHECK_VALUE(outputs.dim() >= 2, "the metric top", k_,
                      "_accuracy needs outputs [batch, classes]; the model returns ",
                      outputs.sizes());
    const auto [logits, targets] = ByPosition("top-k accuracy", outputs, batch.targets);
    const Tensor best = std::get<1>(logits.topk(std::min<int64_t>(k_, logits.size(1)), 1));
    const Tensor hits = (best == targets.unsqueeze(1)).any(1);
    mean_.Add(hits.sum().item<double>(), hits.numel());
  }
  double Value() const override { return mean_.Value(); }

 private:
  int k_;
  Mean mean_;
};

// The probability that a positive example scores higher than a negative one; ties count half.
// Exact: computed from the ranks of all scores.
class AucMetric : public Metric {
 public:
  void Add(const Tensor& outputs, const Batch& batch) override {
    at::NoGradGuard no_grad;
    const bool two_classes = outputs.dim() == 2 && outputs.size(1) == 2;
    TORCH_CHECK_VALUE(two_classes || IsOneLogit(outputs),
                      "the metric auc needs one score or two logits for each example; the model "
                      "returns ",
                      outputs.sizes());
    const Tensor scores = two_classes ? outputs.select(1, 1) - outputs.select(1, 0) : outputs;
    CheckSameCount("auc", scores, batch.targets);
    const Tensor flat = scores.reshape({-1}).to(at::kDouble).contiguous();
    const Tensor positive = (batch.targets.reshape({-1}) > 0.5).contiguous();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double score = flat.data_ptr<double>()[i];
      has_nan_ |= std::isnan(score);
      scores_.emplace_back(score, positive.data_ptr<bool>()[i]);
    }
  }

  double Value() const override {
    if (has_nan_) return kNoValue;
    std::vector<std::pair<double, bool>> sorted = scores_;
    std::sort(sorted.begin(), sorted.end());
    double ranks = 0;  // of the positive examples, from 1; ties share the mean of theirs
    double positives = 0;
    for (size_t begin = 0; begin < sorted.size();) {
      size_t end = begin;
      double here = 0;
      for (; end < sorted.size() && sorted[end].first == sorted[begin].first; ++end) {
        here += sorted[end].second;
      }
      ranks += here * (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
      positives += here;
      begin = end;
    }
    const double negatives = static_cast<double>(sorted.size()) - positives;
    if (positives == 0 || negatives == 0) return kNoValue;
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives);
  }

 private:
  std::vector<std::pair<double, bool>> scores_;
  bool has_nan_ = false;
};

// The mean over elements of |output - target| or its square.
class ErrorMetric : public Metric {
 public:
  ErrorMetric(const char* name, bool squared) : name_(name), squared_(squared) {}

  void Add(const Tensor& outputs, const Batch& batch) override {
    at::NoGradGuard no_grad;
    CheckSameCount(name_, outputs, batch.targets);
    const Tensor error = outputs.to(at::kDouble) - batch.targets.reshape_as(outputs);
    mean_.Add((squared_ ? error.square() : error.abs()).sum().item<double>(), error.numel());
  }
  double Value() const override { return mean_.Value(); }

 private:
  const char* name_;
  bool squared_;
  Mean mean_;
};

class MeanLossMetric : public Metric {
 public:
  explicit MeanLossMetric(Loss loss) : loss_(std::move(loss)) {}

  void Add(const Tensor& outputs, const Batch& batch) override {
    at::NoGradGuard no_grad;
    const int64_t examples = batch.targets.dim() == 0 ? 1 : batch.targets.size(0);
    if (examples == 0) return;
    mean_.Add(loss_(outputs, batch).item<double>() * static_cast<double>(examples), examples);
  }
  double Value() const override { return mean_.Value(); }

 private:
  Loss loss_;
  Mean mean_;
};

template <typename M, typename... Args>
MetricSpec Spec(std::string name, bool higher_is_better, Args... args) {
  return {std::move(name), higher_is_better, [args...] { return std::make_unique<M>(args...); }};
}

const std::map<std::string, std::function<MetricSpec()>>& MetricsByName() {
  static const auto& kMetrics = *new std::map<std::string, std::function<MetricSpec()>>{
      {"accuracy", Accuracy},
      {"auc", Auc},
      {"mae", MeanAbsoluteErrorMetric},
      {"mse", MeanSquaredErrorMetric},
      {"top5_accuracy", [] { return TopK(5); }},
  };
  return kMetrics;
}

}  // namespace

MetricSpec Accuracy() { return Spec<AccuracyMetric>("accuracy", true); }

MetricSpec TopK(int k) {
  const std::string name = absl::StrCat("top", k, "_accuracy");
  // CheckExperiment() rejects a metric without a factory.
  if (k < 1) return {.name = name, .higher_is_better = true, .make = nullptr};
  return Spec<TopKMetric>(name, true, k);
}

MetricSpec Auc() { return Spec<AucMetric>("auc", true); }

MetricSpec MeanAbsoluteErrorMetric() { return Spec<ErrorMetric>("mae", false, "mae", false); }

MetricSpec MeanSquaredErrorMetric() { return Spec<ErrorMetric>("mse", false, "mse", true); }

MetricSpec MeanLoss(const Loss& loss) { return Spec<MeanLossMetric>("loss", false, loss); }

absl::StatusOr<MetricSpec> MetricByName(const std::string& name, const Loss& loss) {
  if (name == "loss") return MeanLoss(loss);
  if (const auto found = MetricsByName().find(name); found != MetricsByName().end()) {
    return found->second();
  }
  std::vector<std::string> names = {"loss"};
  for (const auto& [known, make] : MetricsByName()) names.push_back(known);
  std::sort(names.begin(), names.end());
  return absl::InvalidArgumentError(
      absl::StrCat("unknown metric '", name, "'", base::DidYouMean(name, names),
                   "; expected some of ", absl::StrJoin(names, ", ")));
}

std::vector<MetricSpec> DefaultMetrics(const ModelInput& input) {
  const std::string loss = input.loss.empty() ? DefaultLossName(input) : input.loss;
  if (loss == "cross_entropy") return {Accuracy()};
  if (loss == "binary_cross_entropy") return {Accuracy(), Auc()};
  if (loss == "ctc") return {};
  return {MeanAbsoluteErrorMetric()};
}

}  // namespace muster::train
