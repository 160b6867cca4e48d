#include "train/torch/model/trace.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn.h>

#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/torch/model/losses.h"
#include "train/torch/model/models.h"
#include "train/torch/model/script_model.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> OpsOf(const std::vector<Operation>& operations) {
  std::vector<std::string> ops;
  for (const Operation& operation : operations) ops.push_back(operation.op);
  return ops;
}

// A layer, a normalisation with buffers, an in-place operation, a list of tensors.
struct Net : torch::nn::Module {
  Net() {
    fc = register_module("fc", torch::nn::Linear(4, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
  }
  at::Tensor forward(at::Tensor inputs) {
    at::Tensor x = norm->forward(fc->forward(inputs));
    x.relu_();
    return at::cat({x, inputs.view({inputs.size(0), -1})}, 1).narrow(1, 0, 3);
  }
  torch::nn::Linear fc{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

constexpr char kScript[] = R"(
def forward(self, inputs):
    x = torch.linear(inputs, self.weight)
    if bool(torch.gt(torch.sum(x), -1)):
        x = torch.relu(x)
    return x
)";

class TraceTest : public testing::Test {
 protected:
  static absl::StatusOr<std::vector<Operation>> Try(Model& model, const ModelInput& input) {
    return TraceModel(model, input, *LossByName("cross_entropy"), 5);
  }
  static std::vector<Operation> Trace(Model& model, const ModelInput& input) {
    absl::StatusOr<std::vector<Operation>> operations = Try(model, input);
    EXPECT_TRUE(operations.ok()) << operations.status();
    return operations.ok() ? *std::move(operations) : std::vector<Operation>();
  }

  const ModelInput input_{.inputs = {4}, .classes = 3};
};

TEST_F(TraceTest, RecordsACppModule) {
  ModuleModel<Net> model(std::make_shared<Net>());
  model.SetTraining(true);
  const at::Tensor mean = model.Buffers()[0].second.clone();
  const std::vector<Operation> operations = Trace(model, input_);
  const std::vector<std::string> ops = OpsOf(operations);
  ASSERT_GE(ops.size(), 9u);
  EXPECT_THAT(
      std::vector(ops.begin(), ops.begin() + 8),
      ElementsAre("Placeholder", "Placeholder", "t", "addmm", "batch_norm", "relu", "view", "cat"));
  EXPECT_THAT(operations[2].reads, ElementsAre("fc.weight"));
  EXPECT_THAT(operations[3].reads, ElementsAre("fc.bias"));
  EXPECT_THAT(operations[3].operands, ElementsAre(0, 2));
  EXPECT_EQ(operations[3].shape, base::Shape({5, 8}));
  EXPECT_EQ(operations[3].dtype, base::DType::kFloat32);
  EXPECT_THAT(operations[4].reads,
              ElementsAre("norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"));
  EXPECT_THAT(operations[7].operands, ElementsAre(5, 6));  // through a list
  EXPECT_EQ(operations.back().name, "loss");
  EXPECT_TRUE(at::equal(model.Buffers()[0].second, mean));
  EXPECT_FALSE(model.Parameters()[0].second.grad().defined());
}

TEST_F(TraceTest, RecordsATorchScriptModule) {
  torch::jit::Module module("Net");
  module.register_parameter("weight", at::ones({3, 4}).requires_grad_(), false);
  module.define(kScript);
  ScriptModel model(module);
  // The interpreter optimises a program after its first executions.
  for (int i = 0; i < 4; ++i) {
    const std::vector<Operation> operations = Trace(model, input_);
    const std::vector<std::string> ops = OpsOf(operations);
    ASSERT_GE(ops.size(), 4u);
    EXPECT_THAT(std::vector(ops.begin(), ops.begin() + 4),
                ElementsAre("Placeholder", "Placeholder", "linear", "relu"));
    EXPECT_THAT(operations[2].reads, ElementsAre("weight"));
    EXPECT_THAT(operations[3].reads, IsEmpty());
    EXPECT_THAT(operations[3].operands, ElementsAre(2));
  }
}

TEST_F(TraceTest, EveryBuiltInModelIsRecorded) {
  const ModelInput images{.inputs = {3, 32, 32}, .classes = 10};
  for (const std::string name : {"mlp", "cnn", "resnet18"}) {
    const auto model = MakeModel(name, images);
    ASSERT_TRUE(model.ok()) << model.status();
    const std::vector<Operation> operations = Trace(**model, images);
    std::set<std::string> read;
    for (const Operation& operation : operations) {
      read.insert(operation.reads.begin(), operation.reads.end());
    }
    for (const auto& [parameter, tensor] : (*model)->Parameters()) {
      EXPECT_TRUE(read.contains(parameter)) << name << ": " << parameter;
    }
    EXPECT_EQ(operations.back().shape, base::Shape()) << name;
  }
}

TEST_F(TraceTest, AModelThatFailsIsAnError) {
  ModuleModel<Net> model(std::make_shared<Net>());
  EXPECT_TRUE(absl::IsInvalidArgument(Try(model, {.inputs = {7}, .classes = 3}).status()));
  Trace(model, input_);  // the next trace is not affected
}

}  // namespace
}  // namespace muster::train
