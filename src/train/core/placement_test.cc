#include "train/core/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using Kind = Variable::Kind;

constexpr int64_t kBucketBytes = 64 << 10;

Variable Make(std::string name, Kind kind, base::Shape shape,
              base::DType dtype = base::DType::kFloat32) {
  return {{std::move(name), dtype, std::move(shape)}, kind};
}

std::vector<Variable> Model() {
  return {Make("embedding", Kind::kTable, {10'007, 16}),
          Make("conv", Kind::kDense, {64, 32, 5, 5}),
          Make("conv.bias", Kind::kDense, {64}),
          Make("norm.mean", Kind::kBuffer, {64}),
          Make("fc", Kind::kDense, {1024, 3136}),
          Make("fc.bias", Kind::kDense, {1024}),
          Make("nothing", Kind::kDense, {0, 7}),
          Make("temperature", Kind::kDense, {}),
          Make("norm.count", Kind::kBuffer, {}, base::DType::kInt64),
          Make("small_table", Kind::kTable, {3, 4}),
          Make("one_row", Kind::kDense, {1, 50'000}),
          Make("no_rows", Kind::kTable, {0, 4}),
          Make("odd", Kind::kBuffer, {3}, base::DType::kUint8),
          Make("no_buffer", Kind::kBuffer, {0})};
}

int64_t BytesOf(const ShardPlan& plan) {
  return 4 * (plan.shape.elements + plan.shape.table_elements);
}

class PlacementTest : public testing::TestWithParam<int> {
 protected:
  const std::vector<Variable> variables_ = Model();
  const std::vector<ShardPlan> plans_ = Place(variables_, GetParam(), kBucketBytes);
};

INSTANTIATE_TEST_SUITE_P(Servers, PlacementTest, testing::Values(1, 2, 3, 7));

TEST_P(PlacementTest, EveryElementIsPlacedOnce) {
  ASSERT_EQ(plans_.size(), static_cast<size_t>(GetParam()));
  // The owner of each byte of the shards' memory.
  std::map<std::pair<int, Kind>, std::vector<int>> owners;
  for (int server = 0; server < GetParam(); ++server) {
    const ShardShape& shape = plans_[server].shape;
    owners[{server, Kind::kDense}].assign(4 * shape.elements, -1);
    owners[{server, Kind::kTable}].assign(4 * shape.table_elements, -1);
    owners[{server, Kind::kBuffer}].assign(shape.buffer_bytes, -1);
  }
  for (int v = 0; v < static_cast<int>(variables_.size()); ++v) {
    int64_t next = 0;
    for (const Extent& extent : ExtentsOf(plans_, v)) {
      EXPECT_EQ(extent.first, next);
      next += extent.bytes;
      std::vector<int>& memory = owners[{extent.server, variables_[v].kind}];
      ASSERT_LE(extent.offset + extent.bytes, static_cast<int64_t>(memory.size()));
      for (int64_t i = 0; i < extent.bytes; ++i) {
        ASSERT_EQ(memory[extent.offset + i], -1) << "two variables have byte " << i;
        memory[extent.offset + i] = v;
      }
    }
    EXPECT_EQ(next, variables_[v].spec.bytes()) << variables_[v].spec.name;
  }
  for (const auto& [where, memory] : owners) {
    EXPECT_EQ(std::count(memory.begin(), memory.end(), -1), 0) << "unused memory";
  }
}

TEST_P(PlacementTest, ServersAreBalanced) {
  int64_t total = 0;
  for (const ShardPlan& plan : plans_) total += BytesOf(plan);
  const int64_t fair = total / GetParam();
  for (const ShardPlan& plan : plans_) EXPECT_LT(BytesOf(plan), fair * 5 / 4);
}

TEST_P(PlacementTest, BucketsCoverTheShard) {
  for (const ShardPlan& plan : plans_) {
    int64_t next = 0;
    for (int bucket = 0; bucket < static_cast<int>(plan.shape.buckets.size()); ++bucket) {
      const Bucket& range = plan.shape.buckets[bucket];
      EXPECT_EQ(range.offset, next);
      EXPECT_GT(range.elements, 0);
      EXPECT_LE(range.elements * 4, kBucketBytes);
      next += range.elements;
      // The pieces map each element of the bucket to its variable.
      int64_t within = 0;
      for (const Piece& piece : plan.PiecesOf(bucket)) {
        EXPECT_EQ(piece.offset, within);
        EXPECT_GT(piece.elements, 0);
        within += piece.elements;
        const auto whole = std::find_if(plan.dense.begin(), plan.dense.end(), [&](const Piece& p) {
          return p.variable == piece.variable && p.first <= piece.first &&
                 piece.first + piece.elements <= p.first + p.elements;
        });
        ASSERT_NE(whole, plan.dense.end());
        EXPECT_EQ(whole->offset + piece.first - whole->first, range.offset + piece.offset);
      }
      EXPECT_EQ(within, range.elements);
    }
    EXPECT_EQ(next, plan.shape.elements);
  }
}

TEST_P(PlacementTest, LaterVariablesComeFirst) {
  for (const ShardPlan& plan : plans_) {
    for (size_t i = 1; i < plan.dense.size(); ++i) {
      EXPECT_GE(plan.dense[i - 1].variable, plan.dense[i].variable);
    }
  }
}

TEST_P(PlacementTest, IsTheSameEachTime) {
  const std::vector<ShardPlan> again = Place(Model(), GetParam(), kBucketBytes);
  for (size_t server = 0; server < again.size(); ++server) {
    EXPECT_EQ(again[server].shape.ToJson(), plans_[server].shape.ToJson());
    for (size_t i = 0; i < again[server].dense.size(); ++i) {
      EXPECT_EQ(again[server].dense[i].variable, plans_[server].dense[i].variable);
      EXPECT_EQ(again[server].dense[i].first, plans_[server].dense[i].first);
    }
  }
}

TEST_P(PlacementTest, AShapeSurvivesTheWire) {
  for (const ShardPlan& plan : plans_) {
    const auto text = plan.shape.ToJson().dump();
    const auto back = ShardShape::FromJson(nlohmann::json::parse(text));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->ToJson().dump(), text);
    EXPECT_EQ(back->bucket_count(), plan.shape.bucket_count());
    for (size_t i = 0; i < plan.shape.buckets.size(); ++i) {
      EXPECT_EQ(back->buckets[i].offset, plan.shape.buckets[i].offset);
    }
    for (size_t i = 0; i < plan.shape.tables.size(); ++i) {
      EXPECT_EQ(back->tables[i].offset, plan.shape.tables[i].offset);
    }
  }
}

TEST(Placement, LargeVariablesAreSplitAndSmallOnesAreNot) {
  const std::vector<Variable> variables = {Make("large", Kind::kDense, {1000, 1000}),
                                           Make("small", Kind::kDense, {100})};
  const auto plans = Place(variables, 4, kBucketBytes);
  EXPECT_EQ(ExtentsOf(plans, 0).size(), 4U);
  EXPECT_EQ(ExtentsOf(plans, 1).size(), 1U);
}

TEST(Placement, MoreServersThanVariables) {
  const auto plans = Place({Make("only", Kind::kDense, {5})}, 3, kBucketBytes);
  EXPECT_EQ(plans[0].shape.elements, 5);
  EXPECT_EQ(plans[1].shape.bucket_count(), 0);
  EXPECT_EQ(plans[2].shape.bucket_count(), 0);
}

TEST(Placement, NoVariables) {
  const auto plans = Place({}, 2, kBucketBytes);
  EXPECT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0].shape.bucket_count(), 0);
}

TEST(Placement, TinyBuckets) {
  const auto plans = Place({Make("only", Kind::kDense, {5})}, 1, 1);
  EXPECT_EQ(plans[0].shape.buckets.size(), 5U);
}

TEST(ShardShapeFromJson, RejectsDamage) {
  const std::string good = Place(Model(), 2, kBucketBytes)[0].shape.ToJson().dump();
  for (const char* key : {"elements", "buckets", "tables", "table_elements", "buffer_bytes"}) {
    for (const char* value :
         {"null", "-1", "1.5", "\"5\"", "9223372036854775807", "18446744073709551615", "[-4]",
          "[1.5]", "[[0,0,-1,-1]]", "[[0,0,4294967296,4294967296]]", "[[0,0]]", "[[]]", "{\"a\":1}",
          "[9223372036854775807,9223372036854775807]", "[0]", "true"}) {
      nlohmann::json json = nlohmann::json::parse(good);
      json[key] = nlohmann::json::parse(value);
      EXPECT_FALSE(ShardShape::FromJson(json).ok()) << key << " = " << value;
    }
    nlohmann::json json = nlohmann::json::parse(good);
    json.erase(key);
    EXPECT_FALSE(ShardShape::FromJson(json).ok()) << "without " << key;
  }
  for (const char* text : {"null", "[]", "{}", "5", "\"shape\""}) {
    EXPECT_FALSE(ShardShape::FromJson(nlohmann::json::parse(text)).ok()) << text;
  }
}

}  // namespace
}  // namespace muster::train
