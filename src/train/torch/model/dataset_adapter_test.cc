#include "train/torch/model/dataset_adapter.h"

#include <ATen/ATen.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using at::Tensor;
using testing::HasSubstr;
using testing::StrEq;

std::shared_ptr<const data::Dataset> Open(const DataFactory& factory, const std::string& split) {
  auto dataset = factory(split);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return dataset.ok() ? *dataset : nullptr;
}

std::string ErrorOf(const Batch& train, const Batch& test, const std::string& split = "train") {
  return std::string(FromTensors(train, test)(split).status().message());
}

const Batch& Digits() {
  static const auto& kDigits =
      *new Batch{at::arange(5 * 6, at::kFloat).view({5, 2, 3}), at::arange(5, at::kLong)};
  return kDigits;
}

TEST(ToTensorsTest, TensorsOwnTheMemoryOfTheBatch) {
  data::Batch batch;
  batch.size = 2;
  batch.inputs.Reset({base::DType::kFloat32, {3}}, 2);
  batch.targets.Reset({base::DType::kInt64, {}}, 2);
  for (int i = 0; i < 6; ++i) batch.inputs.as<float>()[i] = static_cast<float>(i);
  batch.targets.as<int64_t>()[0] = 7;
  batch.targets.as<int64_t>()[1] = 8;
  const void* const memory = batch.inputs.data();

  Batch tensors = ToTensors(std::move(batch));
  batch.inputs.Reset({base::DType::kFloat32, {3}}, 2);  // The batch can be filled again.
  EXPECT_NE(batch.inputs.data(), memory);
  EXPECT_EQ(tensors.inputs.data_ptr(), memory);
  EXPECT_TRUE(tensors.inputs.equal(at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_TRUE(tensors.targets.equal(at::tensor(std::vector<int64_t>{7, 8})));
}

TEST(FromTensorsTest, ReadsExamplesInTheOrderAsked) {
  const auto dataset = Open(FromTensors(Digits(), {}), "train");
  EXPECT_EQ(dataset->size(), 5);
  data::Batch batch;
  ASSERT_EQ(dataset->Read({4, 0, 4}, batch), absl::OkStatus());
  const Batch tensors = ToTensors(std::move(batch));
  const Tensor order = at::tensor(std::vector<int64_t>{4, 0, 4});
  EXPECT_TRUE(tensors.inputs.equal(Digits().inputs.index_select(0, order)));
  EXPECT_TRUE(tensors.targets.equal(order));
  EXPECT_EQ(dataset->Read({5}, batch).code(), absl::StatusCode::kInvalidArgument);
}

TEST(FromTensorsTest, TakesViews) {
  const Batch columns = {Digits().inputs.transpose(1, 2), Digits().targets};
  data::Batch batch;
  ASSERT_EQ(Open(FromTensors(columns, {}), "train")->Read({1}, batch), absl::OkStatus());
  EXPECT_TRUE(ToTensors(std::move(batch)).inputs[0].equal(columns.inputs[1]));
}

TEST(FromTensorsTest, DescribesTheDataToAModel) {
  const Batch test = {at::zeros({1, 2, 3}), at::full({1}, 9, at::kLong)};
  const ModelInput digits = InputOf(*Open(FromTensors(Digits(), test), "train"), "mse");
  EXPECT_EQ(digits.inputs, (base::Shape{2, 3}));
  EXPECT_EQ(digits.targets, base::Shape{});
  EXPECT_EQ(digits.classes, 10);
  EXPECT_EQ(digits.vocabulary, 0);
  EXPECT_EQ(digits.loss, "mse");

  const Batch tokens = {at::tensor(std::vector<int64_t>{3, 1, 4, 1}).view({2, 2}),
                        at::tensor(std::vector<float>{0, 1})};
  const ModelInput words = InputOf(*Open(FromTensors(tokens, {}), "train"));
  EXPECT_EQ(words.vocabulary, 5);
  EXPECT_EQ(words.classes, 2);
  EXPECT_EQ(DefaultLossName(words), "binary_cross_entropy");

  const Batch prices = {at::zeros({2, 4}), at::tensor(std::vector<float>{0.5, 1})};
  EXPECT_EQ(InputOf(*Open(FromTensors(prices, {}), "train")).classes, 0);
}

TEST(FromTensorsTest, ReportsMismatches) {
  EXPECT_THAT(ErrorOf({at::zeros({3, 2}), at::zeros({2})}, {}),
              StrEq("there are 3 training inputs, but 2 targets; give one target for each input"));
  EXPECT_THAT(ErrorOf({at::zeros({0, 2}), at::zeros({0})}, {}),
              HasSubstr("the training inputs are empty"));
  EXPECT_THAT(ErrorOf({at::zeros({1, 2}, at::kComplexFloat), at::zeros({1})}, {}),
              StrEq("the training inputs: tensors of type ComplexFloat are not supported"));
  EXPECT_THAT(ErrorOf(Digits(), {at::zeros({1, 6}), at::zeros({1}, at::kLong)}),
              StrEq("training and test data differ: inputs [2, 3] of type F32 and targets [] of "
                    "type I64 versus inputs [6] of type F32 and targets [] of type I64; give both "
                    "the same shapes and types"));
  EXPECT_THAT(ErrorOf(Digits(), {}, "test"), HasSubstr("there is no data for 'test'"));
}

TEST(OpenDataTest, ReportsMissingFiles) {
  const auto dataset = OpenData({.format = "mnist", .path = "/no/such/folder"})("train");
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kNotFound) << dataset.status();
}

}  // namespace
}  // namespace muster::train
