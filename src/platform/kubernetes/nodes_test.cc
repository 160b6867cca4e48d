#include "platform/kubernetes/nodes.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {
namespace {

platform::Machine Described(const char* node) {
  platform::Machine machine{.name = "n1", .status = platform::kMachineConnected};
  Describe(k8s::Json::parse(node), machine);
  return machine;
}

TEST(NodesTest, ANodeOfACloudIsDescribed) {
  const platform::Machine machine = Described(R"({
    "metadata": {"labels": {"topology.kubernetes.io/region": "us-west1",
                            "node.kubernetes.io/instance-type": "n1-standard-4"}},
    "spec": {"providerID": "gce://p/us-west1-a/n1"},
    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"},
                             {"type": "ExternalIP", "address": "203.0.113.7"}],
               "conditions": [{"type": "Ready", "status": "True"}]}})");
  EXPECT_EQ(machine.provider, "gce");
  EXPECT_EQ(machine.region, "us-west1");
  EXPECT_EQ(machine.size, "n1-standard-4");
  EXPECT_EQ(machine.public_ip, "203.0.113.7");
  EXPECT_EQ(machine.status, platform::kMachineConnected);
}

TEST(NodesTest, ANodeWithoutACloudHasItsCapacity) {
  const platform::Machine machine = Described(R"({
    "status": {"capacity": {"cpu": "8", "memory": "16Gi"},
               "conditions": [{"type": "Ready", "status": "Unknown"}]}})");
  EXPECT_EQ(machine.provider, "");
  EXPECT_EQ(machine.region, "");
  EXPECT_EQ(machine.size, "8 cpus, 16Gi");
  EXPECT_EQ(machine.status, "NotReady");
}

TEST(NodesTest, OlderLabelsAreRead) {
  const platform::Machine machine = Described(R"({
    "metadata": {"labels": {"failure-domain.beta.kubernetes.io/region": "r",
                            "beta.kubernetes.io/instance-type": "m"}}})");
  EXPECT_EQ(machine.region, "r");
  EXPECT_EQ(machine.size, "m");
}

TEST(NodesTest, AnotherShapeIsHarmless) {
  const platform::Machine machine =
      Described(R"({"metadata": [], "spec": 1, "status": {"addresses": "x", "conditions": {}}})");
  EXPECT_EQ(machine.public_ip, "");
  EXPECT_EQ(machine.status, platform::kMachineConnected);
}

}  // namespace
}  // namespace muster::kubernetes
