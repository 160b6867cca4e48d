#include "process/tree.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "process/host_identity.h"
#include "process/identity.h"

namespace muster::process {
namespace {

TEST(IdentityTest, DistinguishesProcessesWithTheSamePid) {
  auto self = IdentifyProcess(::getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  EXPECT_EQ(FindProcess(*self), Existence::kAlive);
  ProcessIdentity other = *self;
  other.start_ticks += 1;
  EXPECT_EQ(FindProcess(other), Existence::kEnded);
  other = *self;
  other.pid = 1 << 29;
  EXPECT_EQ(FindProcess(other), Existence::kEnded);
}

TEST(IdentityTest, AHostIdentityHasFourParts) {
  const std::vector<std::string> parts = absl::StrSplit(ThisHost(), '/');
  ASSERT_EQ(parts.size(), 4u) << ThisHost();
  EXPECT_NE(parts[1], "");
  EXPECT_NE(parts[2], "");
  EXPECT_NE(parts[3], "");
}

// Looks for this process from `here`, recorded as on the host `there`.
Existence FromTo(absl::string_view here, absl::string_view there) {
  ProcessIdentity identity = *IdentifyProcess(::getpid());
  identity.host = std::string(there);
  return FindProcessFrom(here, identity);
}

TEST(IdentityTest, DistinguishesARebootFromAnotherMachineOrContainer) {
  constexpr char kHere[] = "id/boot/pid:[1]/host";
  EXPECT_EQ(FromTo(kHere, "id/boot/pid:[1]/host"), Existence::kAlive);
  EXPECT_EQ(FromTo(kHere, "id/boot/pid:[1]/renamed"), Existence::kAlive);
  EXPECT_EQ(FromTo(kHere, "id/boot/pid:[2]/host"), Existence::kUnknown);
  EXPECT_EQ(FromTo(kHere, "id/earlier/pid:[1]/host"), Existence::kEnded);
  EXPECT_EQ(FromTo(kHere, "id/earlier/pid:[2]/host"), Existence::kEnded);
  EXPECT_EQ(FromTo(kHere, "other/earlier/pid:[1]/host"), Existence::kUnknown);
  // A cloned machine.
  EXPECT_EQ(FromTo(kHere, "id/earlier/pid:[1]/clone"), Existence::kUnknown);
  EXPECT_EQ(FromTo(kHere, "garbage"), Existence::kUnknown);
  EXPECT_EQ(FromTo(kHere, ""), Existence::kUnknown);
}

TEST(IdentityTest, WithoutAMachineIdThereIsNoReboot) {
  constexpr char kHere[] = "/boot/pid:[1]/host";
  EXPECT_EQ(FromTo(kHere, "/boot/pid:[1]/host"), Existence::kAlive);
  EXPECT_EQ(FromTo(kHere, "/other/pid:[1]/other"), Existence::kUnknown);
  EXPECT_EQ(FromTo(kHere, "/other/pid:[1]/host"), Existence::kUnknown);
  EXPECT_EQ(FromTo(kHere, "id/other/pid:[1]/host"), Existence::kUnknown);
  // The same without boot ids.
  EXPECT_EQ(FromTo("//pid:[1]/host", "//pid:[1]/host"), Existence::kUnknown);
  EXPECT_EQ(FromTo("id//pid:[1]/host", "id//pid:[1]/host"), Existence::kAlive);
  EXPECT_EQ(FromTo("id//pid:[1]/host", "id//pid:[1]/clone"), Existence::kUnknown);
}

TEST(IdentityTest, ReadsIdentitiesWithoutAHostName) {
  EXPECT_EQ(FromTo("id/boot/pid:[1]/host", "id/boot/pid:[1]"), Existence::kAlive);
  EXPECT_EQ(FromTo("id/boot/pid:[1]/host", "id/earlier/pid:[1]"), Existence::kEnded);
  EXPECT_EQ(FromTo("/boot/pid:[1]/host", "/earlier/pid:[1]"), Existence::kUnknown);
}

TEST(ProcessInfoTest, ReadsItself) {
  auto self = ReadProcess(::getpid());
  ASSERT_TRUE(self.ok());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->group, ::getpgrp());
  EXPECT_FALSE(self->zombie);
  EXPECT_EQ(ReadProcess(1 << 29).status().code(), absl::StatusCode::kNotFound);
}

TEST(ProcessInfoTest, SeesZombies) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  while (!ReadProcess(pid)->zombie) ::usleep(1000);
  EXPECT_FALSE(IdentifyProcess(pid).ok());
  EXPECT_EQ(OwnChildren(), std::vector<pid_t>{pid});
  KillAllDescendants();  // reaps it
  EXPECT_FALSE(ReadProcess(pid).ok());
}

}  // namespace
}  // namespace muster::process
