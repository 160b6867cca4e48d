#include "train/torch/model/losses.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/torch/torch_status.h"

// Expected values come from the definitions, written out (CTC: summed over all alignments; AUC:
// counted over all pairs), and agree with PyTorch's.

namespace muster::train {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

const Tensor& Logits() {
  static const auto& kLogits = *new Tensor(
      at::tensor({2.0F, -1.0F, 0.5F, 0.1F, 0.2F, 0.3F, -1.5F, 3.0F, 0.0F}).view({3, 3}));
  return kLogits;
}

Batch Targets(const Tensor& targets) { return {Tensor(), targets}; }

double LossOf(const Loss& loss, const Tensor& outputs, const Tensor& targets) {
  return loss(outputs, Targets(targets)).item<double>();
}

std::string ErrorOf(const Loss& loss, const Tensor& outputs, const Tensor& targets) {
  return std::string(CatchTorch([&] { loss(outputs, Targets(targets)); }).message());
}

double MetricOf(const MetricSpec& spec, const Tensor& outputs, const Tensor& targets) {
  const auto metric = spec.make();
  metric->Add(outputs, Targets(targets));
  return metric->Value();
}

Tensor Classes(std::initializer_list<int64_t> values) {
  return at::tensor(std::vector<int64_t>(values));
}

Tensor Numbers(std::initializer_list<float> values) {
  return at::tensor(std::vector<float>(values));
}

TEST(CrossEntropyTest, OfClasses) {
  const Tensor classes = Classes({0, 2, 0});
  EXPECT_NEAR(LossOf(CrossEntropy(), Logits(), classes), 1.93412268, 1e-6);
  EXPECT_NEAR(LossOf(CrossEntropy(), Logits(), classes.to(at::kByte)), 1.93412268, 1e-6);
  EXPECT_NEAR(LossOf(CrossEntropy(), Logits(), classes.unsqueeze(1)), 1.93412268, 1e-6);
}

TEST(CrossEntropyTest, OfProbabilities) {
  const Tensor targets = Numbers({0.7, 0.2, 0.1, 0.1, 0.8, 0.1, 0.3, 0.3, 0.4}).view({3, 3});
  EXPECT_NEAR(LossOf(CrossEntropy(), Logits(), targets), 1.56745601, 1e-6);
}

TEST(CrossEntropyTest, OfAClassForEachPosition) {
  const Tensor outputs = Logits().t().unsqueeze(0);  // [1, classes, positions]
  EXPECT_NEAR(LossOf(CrossEntropy(), outputs, Classes({0, 2, 0}).unsqueeze(0)), 1.93412268, 1e-6);
}

TEST(CrossEntropyTest, NamesAnInvalidClass) {
  const char* expected = "a target is class 3, but the model's output has 3 classes (0 to 2)";
  EXPECT_THAT(ErrorOf(CrossEntropy(), Logits(), Classes({0, 3, 1})), StrEq(expected));
  EXPECT_THAT(ErrorOf(CrossEntropy(), Logits(), Classes({0, -100, 1})),
              HasSubstr("a target is class -100"));
}

TEST(CrossEntropyTest, ReportsMismatches) {
  EXPECT_THAT(
      ErrorOf(CrossEntropy(), Logits(), Numbers({0, 1, 2})),
      StrEq("the loss cross_entropy needs integer classes, or a probability for each "
            "output; the targets are floating-point numbers of shape [3], the model returns "
            "[3, 3]"));
  EXPECT_THAT(ErrorOf(CrossEntropy(), Logits(), Classes({0, 1})),
              StrEq("the loss cross_entropy needs targets [3] for the model's outputs [3, 3]; the "
                    "targets are [2]"));
  EXPECT_THAT(ErrorOf(CrossEntropy(), Numbers({1, 2, 3}), Classes({0, 1, 1})),
              HasSubstr("needs outputs [batch, classes]; the model returns [3]"));
}

TEST(BinaryCrossEntropyTest, OfLogits) {
  const Tensor outputs = Numbers({1.5, -0.5, 0, -2});
  EXPECT_NEAR(LossOf(BinaryCrossEntropy(), outputs, Numbers({1, 0, 1, 0})), 0.37389136, 1e-6);
  EXPECT_NEAR(LossOf(BinaryCrossEntropy(), outputs.unsqueeze(1), Classes({1, 0, 1, 0})), 0.37389136,
              1e-6);
}

TEST(BinaryCrossEntropyTest, ReportsMismatches) {
  EXPECT_THAT(ErrorOf(BinaryCrossEntropy(), Numbers({1, 2}), Numbers({0, 2})),
              StrEq("the loss binary_cross_entropy needs targets from 0 to 1; they reach from 0 to "
                    "2"));
  EXPECT_THAT(ErrorOf(BinaryCrossEntropy(), at::zeros({4, 2}), at::zeros({4})),
              StrEq("the loss binary_cross_entropy needs one target for each output; the model "
                    "returns [4, 2], the targets are [4]"));
}

TEST(DistanceLossTest, GoldenValues) {
  const Tensor outputs = Numbers({1, -2, 0.25, 4});
  const Tensor targets = Numbers({0.5, 1, 0, 3.5});
  EXPECT_DOUBLE_EQ(LossOf(MeanSquaredError(), outputs, targets), 2.390625);
  EXPECT_DOUBLE_EQ(LossOf(MeanAbsoluteError(), outputs, targets), 1.0625);
  EXPECT_DOUBLE_EQ(LossOf(Huber(), outputs, targets), 0.6953125);
}

TEST(DistanceLossTest, ColumnsAndRowsAreNotMixedUp) {
  const Tensor outputs = Numbers({1, -2, 0.25, 4}).unsqueeze(1);
  const Tensor targets = Numbers({0.5, 1, 0, 3.5});
  EXPECT_DOUBLE_EQ(LossOf(MeanSquaredError(), outputs, targets), 2.390625);
  EXPECT_THAT(ErrorOf(MeanSquaredError(), at::zeros({4, 2}), at::zeros({2, 4})),
              HasSubstr("the loss mse needs one target for each output"));
}

class CtcTest : public testing::Test {
 protected:
  const Tensor outputs_ =
      at::tensor({0.5F, 1.0F, -0.5F, 0.2F, -0.3F, 0.8F,  1.0F, 0.0F, 0.0F, -0.4F, 0.6F,  0.1F,
                  0.0F, 0.3F, 0.9F,  0.7F, 0.7F,  -0.2F, 0.1F, 0.2F, 0.3F, 0.5F,  -0.5F, 0.0F})
          .view({2, 4, 3});
};

TEST_F(CtcTest, SumsOverAllAlignments) {
  EXPECT_NEAR(LossOf(Ctc(), outputs_, Classes({1, 2, 2, 0}).view({2, 2})), 1.50422882, 1e-6);
}

TEST_F(CtcTest, TakesTargetsOfBlanks) {
  EXPECT_TRUE(std::isfinite(LossOf(Ctc(), outputs_, at::zeros({2, 2}, at::kLong))));
}

TEST_F(CtcTest, ReportsMismatches) {
  EXPECT_THAT(ErrorOf(Ctc(), outputs_, Classes({1, 2, 0, 2}).view({2, 2})),
              StrEq("target 1 of the batch has the blank 0 before the label 2; the loss ctc "
                    "accepts blanks only at the end"));
  EXPECT_THAT(ErrorOf(Ctc(), outputs_, Classes({1, 1, 1, 1, 2, 0}).view({2, 3})),
              StrEq("target 0 of the batch has 3 labels and needs 5 time steps; the model returns "
                    "4"));
  EXPECT_THAT(ErrorOf(Ctc(), outputs_, Classes({1, 7, 2, 0}).view({2, 2})),
              HasSubstr("a target is class 7"));
  EXPECT_THAT(ErrorOf(Ctc(), Logits(), Classes({1, 7, 2})),
              HasSubstr("needs outputs [batch, time, classes]"));
}

TEST(LossByNameTest, AcceptsTheNamesOfTheJobFile) {
  for (const char* name : {"cross_entropy", "binary_cross_entropy", "mse", "mae", "huber", "ctc"}) {
    EXPECT_TRUE(LossByName(name).ok()) << name;
  }
  EXPECT_THAT(LossByName("cross_entrpy").status().message(),
              StrEq("unknown loss 'cross_entrpy' (did you mean 'cross_entropy'?); expected "
                    "one of binary_cross_entropy, cross_entropy, ctc, huber, mae, mse"));
}

TEST(AccuracyTest, CountsHits) {
  EXPECT_DOUBLE_EQ(MetricOf(Accuracy(), Logits(), Classes({0, 2, 0})), 2.0 / 3);
  EXPECT_DOUBLE_EQ(MetricOf(Accuracy(), Logits().t().unsqueeze(0), Classes({0, 2, 0}).unsqueeze(0)),
                   2.0 / 3);
}

TEST(AccuracyTest, OfOneLogit) {
  const Tensor outputs = Numbers({1.5, -0.5, 0.1, -2}).unsqueeze(1);
  EXPECT_DOUBLE_EQ(MetricOf(Accuracy(), outputs, Numbers({1, 0, 0, 0})), 0.75);
}

TEST(AccuracyTest, WeighsBatchesByTheirSize) {
  const auto metric = Accuracy().make();
  EXPECT_TRUE(std::isnan(metric->Value()));
  metric->Add(Logits(), Targets(Classes({0, 2, 1})));
  metric->Add(Logits().narrow(0, 0, 1), Targets(Classes({1})));
  EXPECT_DOUBLE_EQ(metric->Value(), 0.75);
}

TEST(TopKTest, CountsHitsAmongTheBest) {
  EXPECT_DOUBLE_EQ(MetricOf(TopK(2), Logits(), Classes({1, 1, 2})), 2.0 / 3);
  EXPECT_DOUBLE_EQ(MetricOf(TopK(5), Logits(), Classes({1, 1, 2})), 1);
  EXPECT_EQ(TopK(5).name, "top5_accuracy");
}

TEST(AucTest, CountsATieAsHalf) {
  const Tensor scores = Numbers({0.1, 0.4, 0.35, 0.8, 0.4, 0.9, 0.1});
  const Tensor targets = Numbers({0, 0, 1, 1, 1, 0, 1});
  EXPECT_DOUBLE_EQ(MetricOf(Auc(), scores, targets), 5.0 / 12);
  EXPECT_DOUBLE_EQ(MetricOf(Auc(), at::stack({at::zeros({7}), scores}, 1), targets.to(at::kLong)),
                   5.0 / 12);
}

TEST(AucTest, IsTheSameInBatches) {
  const Tensor scores = Numbers({0.1, 0.4, 0.35, 0.8, 0.4, 0.9, 0.1});
  const Tensor targets = Numbers({0, 0, 1, 1, 1, 0, 1});
  const auto metric = Auc().make();
  metric->Add(scores.narrow(0, 0, 3), Targets(targets.narrow(0, 0, 3)));
  metric->Add(scores.narrow(0, 3, 4), Targets(targets.narrow(0, 3, 4)));
  EXPECT_DOUBLE_EQ(metric->Value(), 5.0 / 12);
}

TEST(AucTest, HasNoValueWithoutBothKinds) {
  EXPECT_TRUE(std::isnan(MetricOf(Auc(), Numbers({1, 2}), Numbers({1, 1}))));
  EXPECT_TRUE(std::isnan(MetricOf(Auc(), Numbers({1, NAN}), Numbers({1, 0}))));
}

TEST(ErrorMetricTest, GoldenValues) {
  const Tensor outputs = Numbers({1, -2, 0.25, 4});
  const Tensor targets = Numbers({0.5, 1, 0, 3.5});
  EXPECT_DOUBLE_EQ(MetricOf(MeanSquaredErrorMetric(), outputs.unsqueeze(1), targets), 2.390625);
  EXPECT_DOUBLE_EQ(MetricOf(MeanAbsoluteErrorMetric(), outputs, targets), 1.0625);
  EXPECT_FALSE(MeanAbsoluteErrorMetric().higher_is_better);
}

TEST(MetricTest, ReportsMismatches) {
  const auto error = [](const MetricSpec& spec, const Tensor& outputs, const Tensor& targets) {
    return std::string(CatchTorch([&] { MetricOf(spec, outputs, targets); }).message());
  };
  EXPECT_THAT(error(Accuracy(), Logits(), Classes({1})),
              StrEq("the metric accuracy needs one class as target for each row of logits; the "
                    "model returns [3, 3], the targets are [1]"));
  EXPECT_THAT(error(Auc(), Logits(), Classes({1, 0, 1})),
              StrEq("the metric auc needs one score or two logits for each example; the model "
                    "returns [3, 3]"));
  EXPECT_THAT(error(MeanAbsoluteErrorMetric(), Logits(), Classes({1, 0, 1})),
              HasSubstr("the metric mae needs one target for each output"));
}

TEST(MetricByNameTest, AcceptsTheNamesOfTheJobFile) {
  for (const char* name : {"accuracy", "top5_accuracy", "auc", "mse", "mae", "loss"}) {
    const auto spec = MetricByName(name, CrossEntropy());
    ASSERT_TRUE(spec.ok()) << name;
    EXPECT_EQ(spec->name, name);
  }
  EXPECT_THAT(MetricByName("acuracy", CrossEntropy()).status().message(),
              StrEq("unknown metric 'acuracy' (did you mean 'accuracy'?); expected some of "
                    "accuracy, auc, loss, mae, mse, top5_accuracy"));
}

TEST(MetricByNameTest, LossIsTheMeanOverExamples) {
  const auto metric = MetricByName("loss", MeanSquaredError())->make();
  metric->Add(Numbers({1, 1, 1}), Targets(Numbers({0, 0, 0})));
  metric->Add(Numbers({3}), Targets(Numbers({0})));
  EXPECT_DOUBLE_EQ(metric->Value(), 3);
}

TEST(DefaultsTest, FollowFromTheTargets) {
  const auto names = [](const ModelInput& input) {
    std::vector<std::string> result = {DefaultLossName(input)};
    for (const MetricSpec& metric : DefaultMetrics(input)) result.push_back(metric.name);
    return result;
  };
  EXPECT_THAT(names({.classes = 10}), ElementsAre("cross_entropy", "accuracy"));
  EXPECT_THAT(names({.targets_dtype = base::DType::kFloat32, .classes = 2}),
              ElementsAre("binary_cross_entropy", "accuracy", "auc"));
  EXPECT_THAT(names({.targets_dtype = base::DType::kFloat32}), ElementsAre("mse", "mae"));
}

}  // namespace
}  // namespace muster::train
