#include "train/torch/model/models.h"

#include <ATen/ATen.h>

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "train/torch/model/losses.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StrEq;

ModelInput Images(base::Shape shape) { return {.inputs = std::move(shape), .classes = 10}; }

ModelInput Sentences() {
  return {.inputs = {7}, .inputs_dtype = base::DType::kInt64, .classes = 3, .vocabulary = 50};
}

std::unique_ptr<Model> Make(const std::string& name, const ModelInput& input) {
  auto model = MakeModel(name, input);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::string ErrorOf(const std::string& name, const ModelInput& input) {
  return std::string(MakeModel(name, input).status().message());
}

int64_t ParameterCount(Model& model) {
  int64_t count = 0;
  for (const auto& [name, tensor] : model.Parameters()) count += tensor.numel();
  return count;
}

std::vector<std::string> Names(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

Tensor DenseGradient(const Tensor& parameter) {
  return parameter.grad().is_sparse() ? parameter.grad().to_dense() : parameter.grad();
}

// A step of training reaches every parameter.
void ExpectGradients(Model& model, const Tensor& inputs, int64_t classes) {
  const Tensor outputs = model.Forward(inputs);
  ASSERT_EQ(outputs.sizes().vec(), (std::vector<int64_t>{inputs.size(0), classes}));
  const Tensor targets = at::arange(inputs.size(0)) % classes;
  CrossEntropy()(outputs, {inputs, targets}).backward();
  for (const auto& [name, parameter] : model.Parameters()) {
    ASSERT_TRUE(parameter.grad().defined()) << name;
    EXPECT_GT(DenseGradient(parameter).abs().sum().item<double>(), 0) << name;
  }
}

TEST(ModelsTest, Logistic) {
  const auto model = Make("logistic", Images({1, 28, 28}));
  EXPECT_THAT(Names(model->Parameters()), ElementsAre("fc.weight", "fc.bias"));
  EXPECT_EQ(ParameterCount(*model), 784 * 10 + 10);
  ExpectGradients(*model, at::rand({4, 1, 28, 28}), 10);
}

TEST(ModelsTest, Mlp) {
  const auto model = Make("mlp", Images({20}));
  EXPECT_EQ(ParameterCount(*model), 20 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  ExpectGradients(*model, at::rand({4, 20}), 10);
  EXPECT_EQ(model->Forward(at::rand({3, 20}, at::kDouble)).scalar_type(), at::kFloat);
}

TEST(ModelsTest, Cnn) {
  const auto model = Make("cnn", Images({1, 28, 28}));
  EXPECT_EQ(ParameterCount(*model), 3274634);
  ExpectGradients(*model, at::rand({4, 1, 28, 28}), 10);
}

TEST(ModelsTest, CnnOfAnOddSize) {
  ExpectGradients(*Make("cnn", Images({3, 15, 22})), at::rand({2, 3, 15, 22}), 10);
}

TEST(ModelsTest, ResNet18OfSmallImages) {
  const auto model = Make("resnet18", Images({3, 32, 32}));
  EXPECT_EQ(ParameterCount(*model), 11173962);
  const std::vector<std::string> buffers = Names(model->Buffers());
  EXPECT_EQ(buffers.size(), 60);
  EXPECT_THAT(buffers, testing::Contains("layer4.1.bn2.running_mean"));
  EXPECT_THAT(Names(model->Parameters()), testing::Contains("layer2.0.downsample.0.weight"));
  ExpectGradients(*model, at::rand({4, 3, 32, 32}), 10);
}

TEST(ModelsTest, ResNet18OfLargeImages) {
  const auto model = Make("resnet18", {.inputs = {3, 96, 96}, .classes = 1000});
  EXPECT_EQ(ParameterCount(*model), 11689512);  // torchvision's
  EXPECT_EQ(model->Forward(at::rand({2, 3, 96, 96})).sizes().vec(),
            (std::vector<int64_t>{2, 1000}));
}

TEST(ModelsTest, BatchNormFollowsTheTrainingMode) {
  const auto model = Make("resnet18", Images({3, 8, 8}));
  const auto mean = [&] {
    for (const auto& [name, tensor] : model->Buffers()) {
      if (name == "bn1.running_mean") return tensor.clone();
    }
    return Tensor();
  };
  const Tensor before = mean();
  model->SetTraining(false);
  model->Forward(at::rand({2, 3, 8, 8}));
  EXPECT_TRUE(mean().equal(before));
  model->SetTraining(true);
  model->Forward(at::rand({2, 3, 8, 8}));
  EXPECT_FALSE(mean().equal(before));
}

TEST(ModelsTest, EmbeddingHasSparseGradients) {
  const auto model = Make("embedding", Sentences());
  const Tensor ids = at::randint(50, {4, 7}, at::kLong);
  const std::vector<RowUse> rows = model->RowsNeeded(ids);
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].parameter, "embedding.weight");
  EXPECT_TRUE(rows[0].rows.equal(ids));
  ExpectGradients(*model, ids, 3);
  EXPECT_TRUE(model->Parameters()[0].second.grad().is_sparse());
}

TEST(ModelsTest, EmbeddingNamesAnIdOutsideTheVocabulary) {
  const auto model = Make("embedding", Sentences());
  const absl::Status status = CatchTorch([&] { model->Forward(at::full({2, 7}, 50, at::kLong)); });
  EXPECT_THAT(status.message(), StrEq("the inputs have the id 50, but the vocabulary is 0 to 49"));
}

TEST(ModelsTest, OutputsFollowFromLossAndTargets) {
  EXPECT_EQ(OutputsOf({.classes = 10}), 10);
  EXPECT_EQ(OutputsOf({.targets_dtype = base::DType::kFloat32, .classes = 2}), 1);
  EXPECT_EQ(OutputsOf({.classes = 2, .loss = "binary_cross_entropy"}), 1);
  EXPECT_EQ(OutputsOf({.targets = {3, 2}, .targets_dtype = base::DType::kFloat32}), 6);
}

TEST(ModelsTest, TheSeedDeterminesTheInitialValues) {
  const auto first = [](uint64_t seed) {
    at::manual_seed(seed);
    return Make("mlp", Images({20}))->Parameters()[0].second;
  };
  EXPECT_TRUE(first(1).equal(first(1)));
  EXPECT_FALSE(first(1).equal(first(2)));
}

TEST(ModelsTest, UnknownName) {
  EXPECT_THAT(ErrorOf("resnet81", Images({1, 28, 28})),
              StrEq("unknown model 'resnet81' (did you mean 'resnet18'?); the built-in ones "
                    "are logistic, mlp, cnn, resnet18, embedding; a TorchScript file is given by "
                    "its path"));
}

TEST(ModelsTest, InputsThatDoNotFit) {
  EXPECT_THAT(ErrorOf("cnn", Images({784})),
              StrEq("the model 'cnn' needs floating-point images [channels, height, width] of at "
                    "least 4 by 4; the data has [784] of type F32; choose a model that fits "
                    "the data"));
  EXPECT_THAT(ErrorOf("cnn", Images({1, 3, 3})), HasSubstr("the data has [1, 3, 3]"));
  EXPECT_THAT(ErrorOf("mlp", Sentences()), HasSubstr("the data has [7] of type I64"));
  EXPECT_THAT(ErrorOf("embedding", Images({784})), HasSubstr("needs integer ids [length]"));
  ModelInput unknown = Sentences();
  unknown.vocabulary = 0;
  EXPECT_THAT(ErrorOf("embedding", unknown), HasSubstr("needs the number of ids"));
}

TEST(ModelsTest, AModelTooLargeForTheMachine) {
  const auto model = MakeModel("cnn", Images({1, 1 << 17, 1 << 17}));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kResourceExhausted) << model.status();
  EXPECT_THAT(model.status().message(), HasSubstr("cannot create the model 'cnn': out of memory"));
}

TEST(CheckModelTest, AllBuiltInModelsFit) {
  const std::map<std::string, ModelInput> inputs = {{"logistic", Images({1, 28, 28})},
                                                    {"mlp", Images({1, 28, 28})},
                                                    {"cnn", Images({1, 28, 28})},
                                                    {"resnet18", Images({1, 28, 28})},
                                                    {"embedding", Sentences()}};
  for (const std::string& name : BuiltInModels()) {
    const ModelInput& input = inputs.at(name);
    EXPECT_EQ(CheckModel(*Make(name, input), input, CrossEntropy()), absl::OkStatus()) << name;
  }
}

TEST(CheckModelTest, LeavesTheModelAsItWas) {
  const ModelInput input = Images({3, 8, 8});
  const auto model = Make("resnet18", input);
  const Tensor before = model->Buffers()[0].second.clone();
  ASSERT_EQ(CheckModel(*model, input, CrossEntropy()), absl::OkStatus());
  EXPECT_TRUE(model->Buffers()[0].second.equal(before));
}

TEST(CheckModelTest, ModelAndDataThatDoNotFit) {
  const auto model = Make("mlp", Images({20}));
  EXPECT_THAT(
      CheckModel(*model, Images({30}), CrossEntropy()).message(),
      StrEq("the model does not accept the data's inputs, [2, 30] of type F32 for a batch of "
            "two: mat1 and mat2 shapes cannot be multiplied (2x30 and 20x256)"));
}

TEST(CheckModelTest, LossAndTargetsThatDoNotFit) {
  const auto model = Make("mlp", Images({20}));
  EXPECT_THAT(
      CheckModel(*model, Images({20}), MeanSquaredError()).message(),
      StrEq("the loss failed in a trial with a batch of two zeros (outputs [2, 10], targets "
            "[2]): the loss mse needs one target for each output; the model returns [2, 10], "
            "the targets are [2]"));
}

TEST(CheckModelTest, ReportsTheUsersOwnException) {
  const auto model = Make("mlp", Images({20}));
  const Loss refuses = [](const Tensor&, const Batch&) -> Tensor {
    throw std::runtime_error("no licence for this loss");
  };
  EXPECT_THAT(
      CheckModel(*model, Images({20}), refuses).message(),
      StrEq("the loss failed in a trial with a batch of two zeros (outputs [2, 10], targets "
            "[2]): no licence for this loss"));
  const Loss throws_a_number = [](const Tensor&, const Batch&) -> Tensor { throw 7; };
  EXPECT_THAT(std::string(CheckModel(*model, Images({20}), throws_a_number).message()),
              EndsWith(": an exception not derived from std::exception was thrown"));

  class Broken : public Model {
   public:
    explicit Broken(Model& of) : of_(of) {}
    Tensor Forward(const Tensor&) override { throw std::runtime_error("no weights downloaded"); }
    NamedTensors Parameters() override { return of_.Parameters(); }
    NamedTensors Buffers() override { return {}; }
    void SetTraining(bool) override {}

   private:
    Model& of_;
  } broken(*model);
  EXPECT_THAT(CheckModel(broken, Images({20}), CrossEntropy()).message(),
              StrEq("the model failed in a trial with a batch of two zeros [2, 20]: no weights "
                    "downloaded"));
}

TEST(CheckModelTest, ALossOfSeveralNumbers) {
  const auto model = Make("mlp", Images({20}));
  const Loss loss = [](const Tensor& outputs, const Batch&) { return outputs; };
  EXPECT_THAT(CheckModel(*model, Images({20}), loss).message(),
              StrEq("the loss must be one floating-point number; it is [2, 10]"));
}

}  // namespace
}  // namespace muster::train
