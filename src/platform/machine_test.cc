#include "platform/machine.h"

#include "gmock/gmock.h"
#include "supervise/runner.h"

namespace muster::platform {
namespace {

using testing::SizeIs;

TEST(MachineTest, MachinesAreGroupedByHost) {
  std::vector<job::TaskRecord> tasks = {
      {.id = {"worker", 0}, .state = job::TaskState::kRunning, .host = "b"},
      {.id = {"ps", 0}, .state = job::TaskState::kSucceeded, .host = "a"},
      {.id = {"chief", 0}, .state = job::TaskState::kRunning, .host = "b"},
      {.id = {"worker", 1}, .state = job::TaskState::kPending}};
  std::vector<Machine> machines = MachinesOf(tasks);
  ASSERT_THAT(machines, SizeIs(2));
  EXPECT_EQ(machines[0].name, "a");
  EXPECT_EQ(machines[0].status, kMachineReleased);
  EXPECT_EQ(machines[1].roles, "chief, worker");
  EXPECT_EQ(machines[1].status, kMachineConnected);
  tasks[0].reason = std::string("b") + supervise::kHostUnreachable;
  EXPECT_EQ(MachinesOf(tasks)[1].status, kMachineUnreachable);
}

TEST(MachineTest, SizesAreDescribed) {
  EXPECT_EQ(DescribeSize(1), "1 cpu");
  EXPECT_EQ(DescribeSize(8, int64_t{16} << 30), "8 cpus, 16GiB");
}

}  // namespace
}  // namespace muster::platform
