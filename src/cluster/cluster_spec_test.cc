#include "cluster/cluster_spec.h"

#include "gtest/gtest.h"

namespace muster::cluster {
namespace {

ClusterSpec Example() {
  ClusterSpec cluster;
  cluster.Set({"worker", 1}, "w1:2222");
  cluster.Set({"worker", 0}, "w0:2222");
  cluster.Set({"ps", 0}, "p0:2222");
  cluster.Set({"ps", 1}, "p1:2222");
  cluster.Set({"chief", 0}, "c0:2222");
  cluster.Set({"evaluator", 0}, "e0:2222");
  return cluster;
}

TEST(ClusterSpecTest, ReturnsAddresses) {
  const ClusterSpec cluster = Example();
  EXPECT_EQ(cluster.AddressOf({"worker", 1}), "w1:2222");
  EXPECT_EQ(cluster.AddressOf({"worker", 2}), "");
  EXPECT_EQ(cluster.AddressOf({"nobody", 0}), "");
  EXPECT_TRUE(cluster.Contains({"ps", 1}));
  EXPECT_FALSE(cluster.Contains({"ps", 2}));
  EXPECT_EQ(cluster.size(), 6);
  EXPECT_TRUE(ClusterSpec().empty());
}

TEST(ClusterSpecTest, HostsAreInOrderOfIndexAsANumber) {
  ClusterSpec cluster;
  for (int i : {10, 2, 0}) cluster.Set({"ps", i}, "p" + std::to_string(i) + ":1");
  EXPECT_EQ(cluster.Hosts("ps"), "p0:1,p2:1,p10:1");
  EXPECT_EQ(cluster.Hosts("worker"), "");
}

TEST(ClusterSpecTest, WithoutLeavesTheRestAlone) {
  const ClusterSpec cluster = Example().Without("evaluator");
  EXPECT_EQ(cluster.size(), 5);
  EXPECT_FALSE(cluster.Contains({"evaluator", 0}));
  EXPECT_EQ(cluster.Without("evaluator"), cluster);
}

TEST(ClusterSpecTest, SparsePsSeesOnlyItself) {
  ClusterSpec expected;
  expected.Set({"ps", 1}, "p1:2222");
  EXPECT_EQ(Example().SparseViewOf({"ps", 1}), expected);
}

TEST(ClusterSpecTest, SparseWorkerSeesEveryPsTheChiefAndItself) {
  ClusterSpec expected;
  expected.Set({"chief", 0}, "c0:2222");
  expected.Set({"ps", 0}, "p0:2222");
  expected.Set({"ps", 1}, "p1:2222");
  expected.Set({"worker", 1}, "w1:2222");
  EXPECT_EQ(Example().SparseViewOf({"worker", 1}), expected);
}

}  // namespace
}  // namespace muster::cluster
