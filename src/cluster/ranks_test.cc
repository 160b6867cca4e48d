#include "cluster/ranks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(RanksTest, ChiefThenWorkersThenOthersByName) {
  ClusterSpec cluster;
  cluster.Set({"actor", 0}, "h:1");
  cluster.Set({"worker", 10}, "h:2");
  cluster.Set({"worker", 2}, "h:3");
  cluster.Set({"zoo", 0}, "h:4");
  cluster.Set({"chief", 0}, "h:5");
  cluster.Set({"ps", 0}, "h:6");
  cluster.Set({"evaluator", 0}, "h:7");
  EXPECT_THAT(RankedTasks(cluster),
              ElementsAre(TaskId{"chief", 0}, TaskId{"worker", 2}, TaskId{"worker", 10},
                          TaskId{"actor", 0}, TaskId{"zoo", 0}));
}

TEST(RanksTest, VariablesOfAWorker) {
  ClusterSpec cluster;
  cluster.Set({"master", 0}, "a:2222");
  cluster.Set({"worker", 0}, "b:2222");
  cluster.Set({"worker", 1}, "b:2223");
  cluster.Set({"worker", 2}, "a:2223");
  EXPECT_THAT(CollectiveVariables(cluster, {"worker", 1}),
              UnorderedElementsAre(
                  Pair("RANK", "2"), Pair("WORLD_SIZE", "4"), Pair("LOCAL_RANK", "1"),
                  Pair("LOCAL_WORLD_SIZE", "2"), Pair("GROUP_RANK", "1"), Pair("MASTER_ADDR", "a"),
                  Pair("MASTER_PORT", "2222"), Pair("JAX_COORDINATOR_ADDRESS", "a:2222"),
                  Pair("JAX_NUM_PROCESSES", "4"), Pair("JAX_PROCESS_ID", "2")));
  const auto last = CollectiveVariables(cluster, {"worker", 2});
  EXPECT_EQ(last.at("LOCAL_RANK"), "1");
  EXPECT_EQ(last.at("GROUP_RANK"), "0");
}

TEST(RanksTest, Ipv6LeaderHasNoBracketsInMasterAddr) {
  ClusterSpec cluster;
  cluster.Set({"worker", 0}, "[::1]:2222");
  const auto variables = CollectiveVariables(cluster, {"worker", 0});
  EXPECT_EQ(variables.at("MASTER_ADDR"), "::1");
  EXPECT_EQ(variables.at("JAX_COORDINATOR_ADDRESS"), "[::1]:2222");
}

TEST(RanksTest, TasksWithoutARankGetNothing) {
  ClusterSpec cluster;
  cluster.Set({"worker", 0}, "a:1");
  cluster.Set({"ps", 0}, "a:2");
  cluster.Set({"evaluator", 0}, "a:3");
  EXPECT_THAT(CollectiveVariables(cluster, {"ps", 0}), IsEmpty());
  EXPECT_THAT(CollectiveVariables(cluster, {"evaluator", 0}), IsEmpty());
  EXPECT_THAT(CollectiveVariables(cluster, {"worker", 1}), IsEmpty());
}

}  // namespace
}  // namespace muster::cluster
