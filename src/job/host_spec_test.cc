#include "job/host_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "job/testing.h"

namespace muster::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string MistakesOfText(absl::string_view text) {
  return std::string(ParseHosts(text).status().message());
}

// Returns a job file with these hosts.
std::string Job(const std::string& hosts) {
  return absl::StrCat("name: a\ncommand: x\nroles: {worker: 2, ps: 1}\nhosts: ", hosts, "\n");
}

TEST(HostSpecTest, HostsOfTheCommandLine) {
  const auto hosts = ParseHosts("vm1, me@gpu1:4,[fe80::1%eth0]:0,dom\\me@10.0.0.2,a@b@c");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_THAT(*hosts,
              ElementsAre(HostSpec{.name = "vm1", .address = "vm1"},
                          HostSpec{.name = "gpu1", .address = "gpu1", .user = "me", .slots = 4},
                          HostSpec{.name = "fe80::1%eth0", .address = "fe80::1%eth0", .slots = 0},
                          HostSpec{.name = "10.0.0.2", .address = "10.0.0.2", .user = "dom\\me"},
                          HostSpec{.name = "c", .address = "c", .user = "a@b"}));
}

TEST(HostSpecTest, EveryMistakeOfTheCommandLineIsNamed) {
  EXPECT_EQ(
      MistakesOfText("vm1,vm1:2,,vm2:x"),
      "--hosts: host 'vm1' is listed twice; to run several tasks on it, write vm1:2\n"
      "--hosts: '' is not a valid address; expected a host such as vm1, me@gpu1:4 or [fe80::1]:2\n"
      "--hosts: 'x' is not a number of slots; expected a whole number from 0 (no limit) to 4096. "
      "Set a port in the job file: hosts: [{address: vm1, port: 2222}]");
  EXPECT_THAT(MistakesOfText("fe80::1"), HasSubstr("write an IPv6 address in brackets"));
  EXPECT_THAT(MistakesOfText("vm1:5000"), HasSubstr("Set a port in the job file"));
  for (const char* bad : {"", "@vm1", "me@", "[::1", "[::1]4", "[]:2", "vm1:", "vm1:-1", "vm 1",
                          "vm1;ls", "$(ls)", "a\nb", "vm1:99999999999999999999", "\xff", "vm1/x"}) {
    EXPECT_FALSE(ParseHosts(bad).ok()) << bad;
  }
  std::string many = "h0";
  for (int i = 1; i <= kMaxHosts; ++i) absl::StrAppend(&many, ",h", i);
  EXPECT_THAT(MistakesOfText(many), HasSubstr("at most 1000"));
}

// ssh would read such a word as an option.
TEST(HostSpecTest, NothingBeginsWithADash) {
  EXPECT_FALSE(ParseHosts("-oProxyCommand=x").ok());
  EXPECT_FALSE(ParseHosts("me@-oProxyCommand").ok());
  EXPECT_FALSE(ParseHosts("-oX@vm1").ok());
  EXPECT_THAT(MistakesOf(Job("[{address: -oX}]")), HasSubstr("job.yaml:4:"));
  EXPECT_THAT(MistakesOf(Job("[{address: vm1, user: -oX}]")), HasSubstr("not a valid user name"));
}

TEST(HostSpecTest, HostsOfAJobFile) {
  const JobSpec job = MustParse(Job(R"(
  - vm1
  - me@gpu1:4
  - {address: gpu2, user: me, port: 2222, key: keys/id, slots: 2, roles: [worker]}
  - {address: gpu2, port: 2223, key: ~/.ssh/id}
  - address: fe80::1
    port: 22)"));
  EXPECT_THAT(
      job.hosts,
      ElementsAre(
          HostSpec{.name = "vm1", .address = "vm1"},
          HostSpec{.name = "gpu1", .address = "gpu1", .user = "me", .slots = 4},
          HostSpec{.name = "gpu2:2222",
                   .address = "gpu2",
                   .user = "me",
                   .port = 2222,
                   .key = "/home/me/keys/id",
                   .slots = 2,
                   .roles = {"worker"}},
          HostSpec{.name = "gpu2:2223", .address = "gpu2", .port = 2223, .key = "/home/me/.ssh/id"},
          HostSpec{.name = "[fe80::1]:22", .address = "fe80::1", .port = 22}));
}

TEST(HostSpecTest, MistakesInAJobFileHavePositions) {
  EXPECT_EQ(MistakesOf(Job("vm1")),
            "job.yaml:4:8: 'hosts' must be a list such as [vm1, 'me@gpu1:4', {address: vm2, port: "
            "2222}], not text 'vm1'");
  EXPECT_EQ(MistakesOf(Job("[vm1, 'vm1:2', {user: me}, {address: v, roles: [workr]}]")),
            "job.yaml:4:14: host 'vm1' is listed twice; to run several tasks on it, set 'slots'\n"
            "job.yaml:4:23: a host lacks 'address'; expected the address for ssh\n"
            "job.yaml:4:55: 'workr' in 'roles' of a host is not a role of the job (did you mean "
            "'worker'?); expected one of: worker, ps");
  EXPECT_THAT(MistakesOf(Job("[[vm1]]")), HasSubstr("a host must be a map"));
  EXPECT_THAT(MistakesOf(Job("[{address: v, slot: 2}]")), HasSubstr("did you mean 'slots'?"));
}

TEST(HostSpecTest, HostTimeout) {
  EXPECT_EQ(MustParse(Job("[vm1]")).policies.host_timeout, absl::Minutes(1));
  EXPECT_EQ(MustParse(Job("[vm1]\npolicies: {host_timeout: 5s}")).policies.host_timeout,
            absl::Seconds(5));
  EXPECT_THAT(MistakesOf(Job("[vm1]\npolicies: {host_timeout: 0s}")),
              HasSubstr("'host_timeout' of policies must be more than 0"));
}

}  // namespace
}  // namespace muster::job
