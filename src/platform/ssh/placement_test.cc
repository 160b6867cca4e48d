#include "platform/ssh/placement.h"

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace muster::ssh {
namespace {

using testing::HasSubstr;
using Placement = std::map<cluster::TaskId, size_t>;

job::JobSpec Job(const std::vector<std::pair<std::string, int>>& roles) {
  job::JobSpec spec;
  for (const auto& [name, replicas] : roles) {
    spec.roles.push_back({.name = name, .replicas = replicas});
  }
  return spec;
}

std::vector<job::HostSpec> Hosts(absl::string_view text) { return *job::ParseHosts(text); }

job::HostSpec Host(const std::string& name, std::optional<int> slots,
                   std::vector<std::string> roles) {
  return {.name = name, .address = name, .slots = slots, .roles = std::move(roles)};
}

Placement MustPlace(const job::JobSpec& spec, const std::vector<job::HostSpec>& hosts,
                    const std::map<cluster::TaskId, std::string>& existing = {}) {
  const auto placement = Place(spec, hosts, existing);
  EXPECT_TRUE(placement.ok()) << placement.status();
  return placement.value_or(Placement());
}

std::map<cluster::TaskId, std::string> Names(const Placement& placement,
                                             const std::vector<job::HostSpec>& hosts) {
  std::map<cluster::TaskId, std::string> names;
  for (const auto& [task, host] : placement) names[task] = hosts[host].name;
  return names;
}

std::string Error(const job::JobSpec& spec, const std::vector<job::HostSpec>& hosts) {
  const auto placement = Place(spec, hosts);
  EXPECT_EQ(placement.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(placement.status().message());
}

TEST(PlacementTest, WithoutSlotsHostsAreSharedEvenly) {
  const Placement placement =
      MustPlace(Job({{"worker", 4}, {"ps", 2}, {"chief", 1}, {"evaluator", 1}}), Hosts("a,b,c"));
  EXPECT_EQ(placement.at({"chief", 0}), 0u);
  std::vector<int> load(3);
  for (const auto& [task, host] : placement) ++load[host];
  std::sort(load.begin(), load.end());
  EXPECT_EQ(load, (std::vector<int>{2, 3, 3}));
  EXPECT_NE(placement.at({"ps", 0}), placement.at({"ps", 1}));
  std::set<size_t> workers;
  for (int i = 0; i < 4; ++i) workers.insert(placement.at({"worker", i}));
  EXPECT_EQ(workers.size(), 3u);
}

TEST(PlacementTest, SlotsAreTheLimit) {
  const Placement placement = MustPlace(Job({{"chief", 1}, {"worker", 5}}), Hosts("a,gpu:4,b"));
  EXPECT_EQ(placement, (Placement{{{"chief", 0}, 0},
                                  {{"worker", 0}, 1},
                                  {{"worker", 1}, 2},
                                  {{"worker", 2}, 1},
                                  {{"worker", 3}, 1},
                                  {{"worker", 4}, 1}}));
  EXPECT_EQ(Error(Job({{"chief", 1}, {"worker", 7}}), Hosts("a,gpu:4,b")),
            "2 tasks have no host: 2 of 'worker' (the hosts that allow it have 6 slots); add "
            "hosts, give them more slots (as in gpu1:4), or lower 'replicas'");
  EXPECT_EQ(MustPlace(Job({{"worker", 50}}), Hosts("a:1,b:0")).size(), 50u);
}

TEST(PlacementTest, HostsRunOnlyTheirRoles) {
  const std::vector<job::HostSpec> hosts = {Host("a", {}, {}), Host("store", {}, {"ps"}),
                                            Host("b", {}, {})};
  const Placement placement = MustPlace(Job({{"chief", 1}, {"ps", 1}, {"worker", 3}}), hosts);
  EXPECT_EQ(placement.at({"ps", 0}), 1u);
  for (int i = 0; i < 3; ++i) EXPECT_NE(placement.at({"worker", i}), 1u);
  EXPECT_EQ(Error(Job({{"worker", 1}, {"ps", 2}}), {Host("a", {}, {"worker"})}),
            "2 tasks have no host: 2 of 'ps' (no host allows it); add the role to 'roles' of a "
            "host, or add a host without 'roles'");
  EXPECT_THAT(Error(Job({{"worker", 1}}), {}), HasSubstr("--hosts vm1,vm2"));
}

// The chief prefers `any`, but then the worker could not be placed.
TEST(PlacementTest, ARoleMakesRoomForOneThatHasNoOtherHost) {
  const std::vector<job::HostSpec> hosts = {Host("any", 1, {}), Host("lead", 1, {"ps", "chief"}),
                                            Host("store", 1, {"ps"})};
  EXPECT_EQ(MustPlace(Job({{"chief", 1}, {"ps", 1}, {"worker", 1}}), hosts),
            (Placement{{{"chief", 0}, 1}, {{"ps", 0}, 2}, {{"worker", 0}, 0}}));
}

TEST(PlacementTest, PlacedTasksStay) {
  const std::vector<job::HostSpec> before = Hosts("a,b,c");
  const job::JobSpec job = Job({{"chief", 1}, {"worker", 3}, {"ps", 1}});
  const auto placed = Names(MustPlace(job, before), before);
  for (const char* text : {"a,b,c", "c,b,a", "d,a,b,c"}) {
    const std::vector<job::HostSpec> after = Hosts(text);
    const auto again =
        Names(MustPlace(Job({{"chief", 1}, {"worker", 4}, {"ps", 1}}), after, placed), after);
    for (const auto& [task, host] : placed) EXPECT_EQ(again.at(task), host) << task.ToString();
    EXPECT_EQ(again.size(), 6u);
  }
  // Tasks of a removed host move; the others stay.
  const std::vector<job::HostSpec> fewer = Hosts("a,c");
  for (const auto& [task, host] : Names(MustPlace(job, fewer, placed), fewer)) {
    if (placed.at(task) == "b") continue;
    EXPECT_EQ(host, placed.at(task)) << task.ToString();
  }
  // A task leaves a host that no longer allows it. The place of a removed task is ignored.
  const std::vector<job::HostSpec> limited = {Host("a", 1, {"ps"}), Host("b", 2, {})};
  EXPECT_EQ(MustPlace(Job({{"worker", 2}}), limited, {{{"worker", 0}, "a"}, {{"worker", 7}, "b"}}),
            (Placement{{{"worker", 0}, 1}, {{"worker", 1}, 1}}));
}

TEST(PlacementTest, ASettledTaskMovesOnlyWhenItMust) {
  const std::vector<job::HostSpec> hosts = {Host("a", 1, {}), Host("b", 1, {"ps"})};
  const job::JobSpec job = Job({{"ps", 1}, {"worker", 1}});
  EXPECT_EQ(MustPlace(job, hosts, {{{"ps", 0}, "a"}}),
            (Placement{{{"ps", 0}, 1}, {{"worker", 0}, 0}}));
}

// Decides by exhaustive search, for small random cases.
bool CanBePlaced(const std::vector<cluster::TaskId>& tasks,
                 const std::vector<job::HostSpec>& hosts) {
  std::vector<int> free;
  free.reserve(hosts.size());
  for (const job::HostSpec& host : hosts) free.push_back(host.slots.value_or(1));
  const std::function<bool(size_t)> rest = [&](size_t at) {
    if (at == tasks.size()) return true;
    for (size_t i = 0; i < hosts.size(); ++i) {
      const auto& roles = hosts[i].roles;
      const bool allowed =
          roles.empty() || std::find(roles.begin(), roles.end(), tasks[at].role) != roles.end();
      if (!allowed || free[i] == 0) continue;
      --free[i];
      const bool placed = rest(at + 1);
      ++free[i];
      if (placed) return true;
    }
    return false;
  };
  return rest(0);
}

TEST(PlacementTest, APlacementIsFoundIfOneExists) {
  std::mt19937 random(7);
  const auto below = [&random](int n) {
    return std::uniform_int_distribution<int>(0, n - 1)(random);
  };
  const std::vector<std::string> names = {"chief", "worker", "ps", "evaluator"};
  int possible = 0;
  for (int round = 0; round < 2000; ++round) {
    const job::JobSpec job =
        Job({{"chief", below(2)}, {"worker", below(4)}, {"ps", below(3)}, {"evaluator", below(2)}});
    std::vector<job::HostSpec> hosts;
    for (int i = 0; i <= below(4); ++i) {
      std::vector<std::string> roles;
      for (const std::string& name : names) {
        if (below(3) == 0) roles.push_back(name);
      }
      hosts.push_back(Host(absl::StrCat("h", i), 1 + below(3), roles));
    }
    std::map<cluster::TaskId, std::string> existing;
    for (const cluster::TaskId& task : job.Tasks()) {
      if (below(3) == 0) existing[task] = absl::StrCat("h", below(5));
    }
    const auto placement = Place(job, hosts, existing);
    ASSERT_EQ(placement.ok(), CanBePlaced(job.Tasks(), hosts)) << placement.status();
    if (!placement.ok()) continue;
    ++possible;
    ASSERT_EQ(placement->size(), job.Tasks().size());
    std::vector<int> load(hosts.size());
    for (const auto& [task, host] : *placement) {
      const auto& roles = hosts[host].roles;
      EXPECT_TRUE(roles.empty() || std::find(roles.begin(), roles.end(), task.role) != roles.end());
      EXPECT_LE(++load[host], *hosts[host].slots);
    }
    EXPECT_EQ(*Place(job, hosts, existing), *placement);
  }
  EXPECT_GT(possible, 200);
}

TEST(PlacementTest, TheLargestJobIsPlacedQuickly) {
  std::string text = "h0:10";
  for (int i = 1; i < job::kMaxHosts; ++i) absl::StrAppend(&text, ",h", i, ":10");
  EXPECT_EQ(
      MustPlace(Job({{"chief", 1}, {"worker", 4096}, {"ps", 4096}, {"other", 1807}}), Hosts(text))
          .size(),
      10000u);
}

}  // namespace
}  // namespace muster::ssh
