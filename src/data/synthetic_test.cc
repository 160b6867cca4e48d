#include "data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "data/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Dataset> Open(DataConfig config) {
  config.format = "synthetic";
  auto dataset = OpenDataset(config);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return *std::move(dataset);
}

std::string Mistake(DataConfig config) {
  config.format = "synthetic";
  return std::string(OpenDataset(config).status().message());
}

Batch ReadFirst(const Dataset& dataset, int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  Batch batch;
  EXPECT_TRUE(dataset.Read(indices, batch).ok());
  return batch;
}

TEST(SyntheticTest, ShapesAndSizes) {
  EXPECT_EQ(Open({})->inputs(), (Feature{base::DType::kFloat32, {1, 28, 28}}));
  EXPECT_EQ(Open({})->classes(), 10);
  EXPECT_EQ(Open({})->size(), 10'000);
  EXPECT_EQ(Open({.split = "test"})->size(), 2'000);
  EXPECT_EQ(Open({.examples = 3})->size(), 3);
  EXPECT_EQ(Open({.split = "test", .examples = 3})->size(), 1);
  EXPECT_EQ(Open({.kind = "images", .shape = {3, 8, 9}})->inputs().shape, (base::Shape{3, 8, 9}));
  EXPECT_EQ(Open({.kind = "tabular", .features = 5})->inputs(),
            (Feature{base::DType::kFloat32, {5}}));
  EXPECT_EQ(Open({.kind = "tabular"})->targets(), (Feature{base::DType::kFloat32, {1}}));
  EXPECT_EQ(Open({.kind = "tabular"})->classes(), 0);
  EXPECT_EQ(Open({.kind = "tabular", .classes = 2})->targets(), (Feature{base::DType::kInt64, {}}));
  EXPECT_EQ(Open({.kind = "tokens", .length = 4})->inputs(), (Feature{base::DType::kInt64, {4}}));
  EXPECT_EQ(Open({.kind = "tokens"})->vocabulary(), 1000);
  EXPECT_EQ(Open({.kind = "sequence"})->inputs(), (Feature{base::DType::kFloat32, {32, 8}}));
  EXPECT_EQ(Open({.kind = "sequence"})->targets(), (Feature{base::DType::kInt64, {8}}));
}

TEST(SyntheticTest, AnExampleDoesNotDependOnHowItIsRead) {
  for (const char* kind : {"images", "tabular", "tokens", "sequence"}) {
    const auto dataset = Open({.kind = kind, .shape = {}});
    const Batch all = ReadFirst(*dataset, 20);
    Batch one;
    ASSERT_TRUE(Open({.kind = kind})->Read({13}, one).ok());
    const int64_t bytes = dataset->inputs().bytes();
    EXPECT_EQ(std::memcmp(all.inputs.as<char>() + 13 * bytes, one.inputs.data(),
                          static_cast<size_t>(bytes)),
              0);
    Batch test;
    ASSERT_TRUE(Open({.split = "test", .kind = kind})->Read({13}, test).ok());
    EXPECT_NE(std::memcmp(test.inputs.data(), one.inputs.data(), static_cast<size_t>(bytes)), 0);
  }
}

// The nearest mean of the training examples predicts the class of test images.
TEST(SyntheticTest, ImagesCanBeLearned) {
  const Batch train = ReadFirst(*Open({}), 2000);
  std::vector<std::vector<float>> means(10, std::vector<float>(784));
  for (int64_t i = 0; i < 2000; ++i) {
    const auto label = static_cast<size_t>(train.targets.as<int64_t>()[i]);
    for (int64_t p = 0; p < 784; ++p) {
      means[label][static_cast<size_t>(p)] += train.inputs.as<float>()[i * 784 + p] / 200;
    }
  }
  const Batch test = ReadFirst(*Open({.split = "test"}), 200);
  int right = 0;
  for (int64_t i = 0; i < 200; ++i) {
    std::vector<double> distances;
    for (const auto& mean : means) {
      double sum = 0;
      for (int64_t p = 0; p < 784; ++p) {
        const double d = test.inputs.as<float>()[i * 784 + p] - mean[static_cast<size_t>(p)];
        sum += d * d;
      }
      distances.push_back(sum);
    }
    const auto best = std::min_element(distances.begin(), distances.end()) - distances.begin();
    right += best == test.targets.as<int64_t>()[i];
  }
  EXPECT_GT(right, 190);
}

TEST(SyntheticTest, TablesAreLinear) {
  const auto dataset = Open({.kind = "tabular", .features = 4});
  const Batch batch = ReadFirst(*dataset, 10'000);
  // Inputs are independent with deviation 1, so E[x_i y] is the weight of x_i.
  std::vector<double> weights(4);
  const auto* x = batch.inputs.as<float>();
  const auto* y = batch.targets.as<float>();
  for (int64_t i = 0; i < 10'000; ++i) {
    for (int64_t f = 0; f < 4; ++f) weights[static_cast<size_t>(f)] += x[i * 4 + f] * y[i] / 1e4;
  }
  double error = 0;
  double total = 0;
  for (int64_t i = 0; i < 10'000; ++i) {
    double guess = 0;
    for (int64_t f = 0; f < 4; ++f) guess += weights[static_cast<size_t>(f)] * x[i * 4 + f];
    error += (guess - y[i]) * (guess - y[i]);
    total += static_cast<double>(y[i]) * y[i];
  }
  EXPECT_LT(error, 0.2 * total);
}

TEST(SyntheticTest, ClassesOfTablesAllOccur) {
  for (const int64_t classes : {2, 5}) {
    const Batch batch = ReadFirst(*Open({.kind = "tabular", .classes = classes}), 1000);
    std::vector<int> counts(static_cast<size_t>(classes));
    for (const int64_t label : TargetsOf(batch)) ++counts.at(static_cast<size_t>(label));
    for (const int count : counts) EXPECT_GT(count, 1000 / classes / 4);
  }
}

TEST(SyntheticTest, TokensDetermineTheClass) {
  const auto dataset = Open({.kind = "tokens", .classes = 3, .vocabulary = 100});
  const Batch batch = ReadFirst(*dataset, 300);
  int right = 0;
  for (int64_t i = 0; i < 300; ++i) {
    std::vector<int> votes(3);
    for (int64_t t = 0; t < 16; ++t) {
      const int64_t id = batch.inputs.as<int64_t>()[i * 16 + t];
      ASSERT_GE(id, 0);
      ASSERT_LT(id, 100);
      ++votes[static_cast<size_t>(id % 3)];
    }
    const auto best = std::max_element(votes.begin(), votes.end()) - votes.begin();
    right += best == batch.targets.as<int64_t>()[i];
  }
  EXPECT_GT(right, 280);
}

TEST(SyntheticTest, SequencesSuitCtc) {
  const auto dataset = Open({.kind = "sequence", .classes = 4, .length = 13});
  EXPECT_EQ(dataset->targets().shape, (base::Shape{3}));
  const Batch batch = ReadFirst(*dataset, 500);
  std::set<int64_t> lengths;
  for (int64_t i = 0; i < 500; ++i) {
    const auto* labels = batch.targets.as<int64_t>() + i * 3;
    int64_t length = 0;
    while (length < 3 && labels[length] > 0) ++length;
    EXPECT_GE(length, 1);
    for (int64_t k = 0; k < length; ++k) EXPECT_LT(labels[k], 4);
    for (int64_t k = length; k < 3; ++k) EXPECT_EQ(labels[k], 0);
    lengths.insert(length);
  }
  EXPECT_EQ(lengths.size(), 3u);
  // The first frame depends only on the first symbol, except for noise.
  const auto* frames = batch.inputs.as<float>();
  const auto* labels = batch.targets.as<int64_t>();
  std::vector<double> same;
  std::vector<double> other;
  for (int64_t i = 1; i < 500; ++i) {
    double distance = 0;
    for (int64_t f = 0; f < 8; ++f) distance += std::abs(frames[i * 13 * 8 + f] - frames[f]);
    (labels[i * 3] == labels[0] ? same : other).push_back(distance);
  }
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  EXPECT_GT(mean(other), 2 * mean(same));
}

TEST(SyntheticTest, InvalidKeysAreRejected) {
  EXPECT_THAT(Mistake({.kind = "image"}), HasSubstr("did you mean 'images'"));
  EXPECT_THAT(Mistake({.split = "valid"}), HasSubstr("it has train and test"));
  EXPECT_THAT(Mistake({.classes = 1}), HasSubstr("'classes' of data must be"));
  EXPECT_THAT(Mistake({.shape = {0, 3}}), HasSubstr("at least 1"));
  EXPECT_THAT(Mistake({.shape = {INT64_MAX, INT64_MAX}}), HasSubstr("product at most"));
  EXPECT_THAT(Mistake({.kind = "tabular", .features = INT64_MAX}), HasSubstr("'features'"));
  EXPECT_THAT(Mistake({.kind = "tokens", .classes = 5, .vocabulary = 4}), HasSubstr("vocabulary"));
  EXPECT_THAT(Mistake({.kind = "sequence", .length = 3}), HasSubstr("'length' of data must be"));
  EXPECT_THAT(Mistake({.kind = "sequence", .features = 1 << 20, .length = 1 << 20}),
              HasSubstr("more than"));
  EXPECT_THAT(Mistake({.examples = -1}), HasSubstr("negative"));
}

}  // namespace
}  // namespace muster::data
