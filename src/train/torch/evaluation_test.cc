#include "train/torch/evaluation.h"

#include <ATen/ATen.h>

#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using at::Tensor;

// Returns its inputs, so that the test controls the predictions.
class Echo : public Model {
 public:
  Tensor Forward(const Tensor& inputs) override { return inputs; }
  NamedTensors Parameters() override { return {}; }
  NamedTensors Buffers() override { return {}; }
  void SetTraining(bool /*on*/) override {}
};

std::string Predicted(const Tensor& outputs, const Tensor& targets, const Loss& loss) {
  base::TempDir dir;
  Experiment experiment;
  experiment.data = FromTensors({outputs, targets}, {outputs, targets});
  experiment.loss = loss;
  Echo model;
  const std::string path = base::JoinPath(dir.path(), "predicted.csv");
  const absl::Status status = PredictToFile(experiment, model, "test", path);
  EXPECT_TRUE(status.ok()) << status;
  return base::ReadFile(path).value_or("");
}

// Certain of the classes in `classes`, [batch, positions]; as [batch, positions, `count`].
Tensor Certain(const Tensor& classes, int64_t count) {
  return at::one_hot(classes, count).to(at::kFloat) * 100;
}

Tensor Classes() { return at::tensor(std::vector<int64_t>{3, 0, 1, 2, 2, 3}).view({2, 3}); }

constexpr char kByPosition[] =
    "example,position,class,probability\n"
    "0,0,3,1.000000\n0,1,0,1.000000\n0,2,1,1.000000\n"
    "1,0,2,1.000000\n1,1,2,1.000000\n1,2,3,1.000000\n";

TEST(PredictTest, AClassForEachExample) {
  const Tensor classes = at::tensor(std::vector<int64_t>{2, 0});
  EXPECT_EQ(Predicted(Certain(classes, 3), classes, CrossEntropy()),
            "example,class,probability\n0,2,1.000000\n1,0,1.000000\n");
}

TEST(PredictTest, AClassForEachPosition) {
  const Tensor outputs = Certain(Classes(), 4).movedim(2, 1);  // [batch, classes, positions]
  EXPECT_EQ(Predicted(outputs, Classes(), CrossEntropy()), kByPosition);
}

TEST(PredictTest, AClassForEachPositionOfAnImage) {
  const Tensor classes = at::tensor(std::vector<int64_t>{1, 0, 0, 1, 1, 1, 0, 0}).view({2, 2, 2});
  const Tensor outputs = Certain(classes, 2).movedim(3, 1);
  EXPECT_EQ(Predicted(outputs, classes, CrossEntropy()),
            "example,position,class,probability\n"
            "0,0,1,1.000000\n0,1,0,1.000000\n0,2,0,1.000000\n0,3,1,1.000000\n"
            "1,0,1,1.000000\n1,1,1,1.000000\n1,2,0,1.000000\n1,3,0,1.000000\n");
}

TEST(PredictTest, CtcHasTheClassesLast) {
  EXPECT_EQ(Predicted(Certain(Classes(), 4), Classes(), Ctc()), kByPosition);
}

TEST(PredictTest, WritesRawOutputs) {
  const Tensor outputs = at::tensor(std::vector<float>{0.5, -2, 1e-7, 3}).view({2, 2});
  EXPECT_EQ(Predicted(outputs, at::rand({2, 2}), MeanSquaredError()),
            "example,outputs\n0,0.5,-2\n1,1e-07,3\n");
}

}  // namespace
}  // namespace muster::train
