#include "process/tree.h"

#include <unistd.h>

#include "gtest/gtest.h"
#include "process/identity.h"

namespace muster {
namespace {

TEST(IdentityTest, KnowsThisProcessAndNotALaterOneWithItsPid) {
  auto self = IdentifyProcess(::getpid());
  ASSERT_TRUE(self.ok()) << self.status();
  EXPECT_TRUE(IsAlive(*self));
  ProcessIdentity other = *self;
  other.start_ticks += 1;
  EXPECT_FALSE(IsAlive(other));
  other = *self;
  other.boot_id = "another boot";
  EXPECT_FALSE(IsAlive(other));
  other = *self;
  other.pid = 1 << 29;
  EXPECT_FALSE(IsAlive(other));
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
