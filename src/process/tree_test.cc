#include "process/tree.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "process/identity.h"

namespace muster {
namespace {

TEST(IdentityTest, KnowsThisProcessAndNotALaterOneWithItsPid) {
  auto self = IdentifyProcess(::getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  EXPECT_EQ(Find(*self), Existence::kAlive);
  ProcessIdentity other = *self;
  other.start_ticks += 1;
  EXPECT_EQ(Find(other), Existence::kEnded);
  other = *self;
  other.pid = 1 << 29;
  EXPECT_EQ(Find(other), Existence::kEnded);
}

TEST(IdentityTest, TellsARestartFromAnotherMachineOrContainer) {
  auto self = IdentifyProcess(::getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  const std::vector<std::string> place = absl::StrSplit(self->place, '/');
  ASSERT_EQ(place.size(), 3u) << self->place;
  const auto at = [&](const std::string& machine, const std::string& boot,
                      const std::string& pids) {
    ProcessIdentity other = *self;
    other.place = absl::StrCat(machine, "/", boot, "/", pids);
    return Find(other);
  };
  EXPECT_EQ(at(place[0], "another boot", place[2]), Existence::kEnded);
  EXPECT_EQ(at("another machine", "another boot", place[2]), Existence::kUnknown);
  EXPECT_EQ(at(place[0], place[1], "pid:[1]"), Existence::kUnknown);
  ProcessIdentity garbage = *self;
  garbage.place = "garbage";
  EXPECT_EQ(Find(garbage), Existence::kUnknown);
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
}  // namespace muster
