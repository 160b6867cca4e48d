#include "train/run/model_graph.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using summary::GraphNode;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

using Nodes = std::map<std::string, GraphNode>;

std::vector<Variable> TwoLayers() {
  return {{.spec = {.name = "fc1.weight", .shape = {1000, 100}}},
          {.spec = {.name = "fc1.bias", .shape = {10}}},
          {.spec = {.name = "fc2.weight", .shape = {4, 10}}},
          {.spec = {.name = "fc2.count", .dtype = base::DType::kInt64, .shape = {}},
           .kind = Variable::Kind::kBuffer}};
}

// inputs -> fc1/linear -> relu -> fc2/linear -> loss
std::vector<Operation> TwoLayerTrace() {
  return {{.op = "Placeholder", .name = "inputs"},
          {.op = "linear", .operands = {0}, .reads = {"fc1.weight", "fc1.bias"}},
          {.op = "relu", .operands = {1}},
          {.op = "linear", .operands = {2}, .reads = {"fc2.weight", "fc2.count"}},
          {.op = "Identity", .name = "loss", .operands = {3}}};
}

Environment WithTasks(const std::vector<cluster::TaskId>& tasks) {
  Environment environment;
  for (const cluster::TaskId& task : tasks) environment.cluster.Set(task, "127.0.0.1:1");
  environment.self = tasks.front();
  return environment;
}

Nodes GraphOf(const Environment& environment, const std::vector<Variable>& variables,
              const std::vector<Operation>& operations) {
  const std::vector<ShardPlan> plans =
      Place(variables, std::max(1, environment.Servers()), 1 << 20);
  const OptimizerConfig optimizer{.kind = OptimizerConfig::Kind::kAdam};
  Nodes nodes;
  for (GraphNode& node : MakeGraph({environment, variables, plans, optimizer, operations})) {
    const std::string name = node.name;
    EXPECT_TRUE(nodes.emplace(name, std::move(node)).second) << name << " is there twice";
  }
  for (const auto& [name, node] : nodes) {
    for (const std::string& input : node.inputs) EXPECT_TRUE(nodes.contains(input)) << name;
  }
  return nodes;
}

TEST(ModelGraphTest, OperationsAreOnTasksAndSlicesOnServers) {
  const Environment environment = WithTasks({{"chief", 0}, {"worker", 0}, {"ps", 0}, {"ps", 1}});
  Nodes nodes = GraphOf(environment, TwoLayers(), TwoLayerTrace());
  const GraphNode& part = nodes["fc1/weight/part_0"];
  EXPECT_EQ(part.op, "VariableV2");
  std::set<std::string> devices;
  int64_t rows = 0;
  for (const auto& [name, node] : nodes) {
    if (!name.starts_with("fc1/weight/part_")) continue;
    devices.insert(node.device);
    rows += node.shape->at(0);
    EXPECT_EQ(nodes[absl::StrCat("train/", name)].device, node.device);
    EXPECT_THAT(nodes[absl::StrCat("train/", name)].inputs,
                ElementsAre(name, "chief_0/gradients/fc1/weight", "worker_0/gradients/fc1/weight"));
  }
  EXPECT_EQ(rows, 1000);
  EXPECT_THAT(devices, ElementsAre("/job:ps/task:0", "/job:ps/task:1"));
  for (const cluster::TaskId& task : {cluster::TaskId{"chief", 0}, cluster::TaskId{"worker", 0}}) {
    const std::string group = absl::StrCat(task.role, "_", task.index, "/");
    const std::string device = absl::StrCat("/job:", task.role, "/task:", task.index);
    EXPECT_EQ(nodes[group + "fc1/linear"].device, device);
    EXPECT_THAT(nodes[group + "fc1/linear"].inputs,
                ElementsAre(group + "inputs", group + "fc1/weight/concat", "fc1/bias"));
    EXPECT_EQ(nodes[group + "fc1/weight/concat"].device, device);
    EXPECT_THAT(nodes[group + "gradients/fc2/weight"].inputs,
                ElementsAre(group + "fc2/linear", group + "loss"));
  }
  EXPECT_EQ(nodes["train/fc1/bias"].op, "ApplyAdam");
  EXPECT_FALSE(nodes.contains("train/fc2/count"));  // a buffer is not trained
}

TEST(ModelGraphTest, WithoutServersTasksHoldTheirVariablesAndReduceTheirGradients) {
  Nodes nodes = GraphOf(WithTasks({{"worker", 0}, {"worker", 1}}), TwoLayers(), TwoLayerTrace());
  EXPECT_EQ(nodes["worker_1/fc1/weight"].device, "/job:worker/task:1");
  EXPECT_EQ(nodes["worker_1/fc1/weight"].shape, base::Shape({1000, 100}));
  EXPECT_THAT(nodes["worker_0/all_reduce/fc1/bias"].inputs,
              ElementsAre("worker_0/gradients/fc1/bias", "worker_1/gradients/fc1/bias"));
  EXPECT_THAT(nodes["worker_0/train/fc1/bias"].inputs,
              ElementsAre("worker_0/fc1/bias", "worker_0/all_reduce/fc1/bias"));
}

TEST(ModelGraphTest, OneProcessHasNoGroups) {
  Nodes nodes = GraphOf(WithTasks({{"chief", 0}}), TwoLayers(), TwoLayerTrace());
  EXPECT_THAT(nodes["train/fc2/weight"].inputs, ElementsAre("fc2/weight", "gradients/fc2/weight"));
  EXPECT_EQ(nodes["loss"].device, "/job:chief/task:0");
}

TEST(ModelGraphTest, AnUntracedModelHasItsVariables) {
  const std::vector<Variable> variables = TwoLayers();
  Nodes nodes = GraphOf(WithTasks({{"chief", 0}, {"ps", 0}}), variables, UntracedModel(variables));
  EXPECT_THAT(nodes["loss"].inputs,
              UnorderedElementsAre("fc1/weight", "fc1/bias", "fc2/weight", "fc2/count"));
}

TEST(ModelGraphTest, ALargeClusterIsDrawnInPart) {
  std::vector<cluster::TaskId> tasks = {{"ps", 0}, {"chief", 0}};
  for (int i = 0; i < 4000; ++i) tasks.push_back({"worker", i});
  const Nodes nodes = GraphOf(WithTasks(tasks), TwoLayers(), TwoLayerTrace());
  EXPECT_LE(nodes.size(), 20010u);
  EXPECT_TRUE(nodes.contains("worker_1000/loss"));
  EXPECT_FALSE(nodes.contains("worker_3999/loss"));
}

TEST(ModulesTest, AnOperationBelongsToTheModuleAroundIt) {
  const std::vector<Operation> operations = {
      {.op = "Placeholder", .name = "inputs"},
      {.op = "conv2d", .operands = {0}, .reads = {"block.0.conv1.weight"}},
      {.op = "relu", .operands = {1}},  // between two layers of block.0
      {.op = "conv2d", .operands = {2}, .reads = {"block.0.conv2.weight"}},
      {.op = "add", .operands = {3, 1}},  // between block.0 and block.1
      {.op = "conv2d", .operands = {4}, .reads = {"block.1.conv1.weight", "block.1.conv1.bias"}},
      {.op = "flatten", .operands = {5}},  // between block and head
      {.op = "linear", .operands = {6}, .reads = {"head.weight"}},
      {.op = "softmax", .operands = {7}}};
  EXPECT_THAT(ModulesOf(operations),
              ElementsAre("block/0", "block/0/conv1", "block/0", "block/0/conv2", "block",
                          "block/1/conv1", "", "head", ""));
}

}  // namespace
}  // namespace muster::train
