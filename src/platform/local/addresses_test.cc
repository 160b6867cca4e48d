#include "platform/local/addresses.h"

#include <set>

#include "cluster/address.h"
#include "gmock/gmock.h"
#include "job/testing.h"

namespace muster::local {
namespace {

using testing::HasSubstr;

constexpr char kJob[] = R"(
name: x
command: train
roles:
  worker: {replicas: 2}
  ps: {}
)";

// Finds consecutive free ports, for job files that fix them.
class FixedPorts {
 public:
  explicit FixedPorts(int count) {
    for (;;) {  // until they are consecutive
      supervise::PortReservations ports;
      first_ = *ports.Reserve();
      int got = 1;
      while (got < count && ports.ReserveExactly(first_ + got).ok()) ++got;
      if (got == count) return;
    }
  }
  int operator[](int i) const { return first_ + i; }

 private:
  int first_ = 0;
};

std::string At(int port) { return absl::StrCat("127.0.0.1:", port); }

job::JobSpec WithPort(int port, int replicas) {
  return job::MustParse(absl::StrCat(
      "name: x\ncommand: train\nroles:\n  worker: {replicas: ", replicas, ", port: ", port, "}\n"));
}

TEST(AddressesTest, EveryTaskGetsItsOwnPort) {
  supervise::PortReservations ports;
  const auto cluster = AssignAddresses(job::MustParse(kJob), {}, ports);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  std::set<int> seen;
  for (const cluster::TaskId& task : job::MustParse(kJob).Tasks()) {
    EXPECT_THAT(std::string(cluster->AddressOf(task)), HasSubstr("127.0.0.1:"));
    EXPECT_TRUE(seen.insert(cluster::PortOf(cluster->AddressOf(task))).second);
    EXPECT_TRUE(IsPicked(job::MustParse(kJob), task));
  }
}

TEST(AddressesTest, ATaskThatStaysKeepsItsAddress) {
  supervise::PortReservations ports;
  const cluster::ClusterSpec before = *AssignAddresses(job::MustParse(kJob), {}, ports);
  const job::JobSpec more = job::MustParse(R"(
name: x
command: train
roles:
  worker: {replicas: 3}
  ps: {}
)");
  const cluster::ClusterSpec after = *AssignAddresses(more, before, ports);
  for (const cluster::TaskId& task : job::MustParse(kJob).Tasks()) {
    EXPECT_EQ(after.AddressOf(task), before.AddressOf(task));
  }
  EXPECT_TRUE(after.Contains({"worker", 2}));
}

TEST(AddressesTest, AFixedPortIncreasesWithTheTaskIndex) {
  const FixedPorts fixed(2);
  supervise::PortReservations ports;
  const auto cluster = AssignAddresses(WithPort(fixed[0], 2), {}, ports);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->Hosts("worker"), absl::StrCat(At(fixed[0]), ",", At(fixed[1])));
  EXPECT_FALSE(IsPicked(WithPort(fixed[0], 2), {"worker", 0}));
}

// All pods of a manifest may use port 2222, whereas tasks on one machine cannot.
TEST(AddressesTest, IgnoresThePortOfAManifest) {
  job::JobSpec spec = WithPort(2222, 2);
  spec.format = job::JobFormat::kTfJobV1;
  EXPECT_EQ(PlanAddresses(spec, {}).AddressOf({"worker", 0}), platform::kUnassigned);
}

TEST(AddressesTest, RejectsAnAddressOfAnotherMachine) {
  supervise::PortReservations ports;
  const auto cluster = AssignAddresses(
      job::MustParse("name: x\ncommand: train\nroles:\n  worker: {addresses: ['10.0.0.1:2222']}\n"),
      {}, ports);
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cluster.status().message()),
              HasSubstr("worker:0: address 10.0.0.1:2222"));
}

TEST(AddressesTest, RejectsAPortOfAnotherJobAndNamesTheTask) {
  const FixedPorts fixed(2);
  supervise::PortReservations others, ours;
  ASSERT_TRUE(others.ReserveExactly(fixed[1]).ok());
  const auto cluster = AssignAddresses(WithPort(fixed[0], 2), {}, ours);
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("worker:1: port"));

  // A rejected change leaves no reservation that blocks the next attempt.
  others.Release(fixed[1]);
  const auto again = AssignAddresses(WithPort(fixed[0], 2), {}, ours);
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(AddressesTest, TasksMayExchangeTheirPorts) {
  const FixedPorts fixed(3);
  supervise::PortReservations ports;
  const cluster::ClusterSpec before = *AssignAddresses(WithPort(fixed[0], 2), {}, ports);
  const auto after = AssignAddresses(WithPort(fixed[1], 2), before, ports);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->Hosts("worker"), absl::StrCat(At(fixed[1]), ",", At(fixed[2])));
}

TEST(AddressesTest, TwoTasksCannotShareAPort) {
  const FixedPorts fixed(1);
  const job::JobSpec spec =
      job::MustParse(absl::StrCat("name: x\ncommand: train\nroles:\n  worker: {port: ", fixed[0],
                                  "}\n  ps: {addresses: ['localhost:", fixed[0], "']}\n"));
  supervise::PortReservations ports;
  const auto cluster = AssignAddresses(spec, {}, ports);
  EXPECT_THAT(std::string(cluster.status().message()), HasSubstr("two tasks of this job"));
}

TEST(AddressesTest, ReadsThePortOfAnAddress) {
  EXPECT_EQ(cluster::PortOf("127.0.0.1:80"), 80);
  EXPECT_EQ(cluster::PortOf("[::1]:8080"), 8080);
  EXPECT_EQ(cluster::PortOf(""), 0);
  EXPECT_EQ(cluster::PortOf("nowhere"), 0);
}

}  // namespace
}  // namespace muster::local
