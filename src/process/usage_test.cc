#include "process/usage.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gtest/gtest.h"

namespace muster::process {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Uses the processor until this process has used `time` of it. Async-signal-safe, for forked
// children.
void Burn(absl::Duration time) {
  timespec used{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (absl::DurationFromTimespec(used) < time);
}

void Touch(int64_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(memory, 1, bytes);
}

// A child that runs `body` and then waits for the end of the test.
class TestChild {
 public:
  explicit TestChild(const std::function<void()>& body) {
    int fds[2];
    EXPECT_EQ(::pipe(fds), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      (void)!::write(fds[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(fds[1]);
    ready_ = fds[0];
  }
  ~TestChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(ready_);
  }
  TestChild(const TestChild&) = delete;
  TestChild& operator=(const TestChild&) = delete;

  // Waits until the body has returned.
  void WaitUntilDone() const {
    char byte = 0;
    EXPECT_EQ(::read(ready_, &byte, 1), 1);
  }
  pid_t pid() const { return pid_; }
  std::vector<ProcessInfo> Tree() const {
    std::vector<ProcessInfo> tree = {*ReadProcess(pid_)};
    for (const ProcessInfo& child : ProcessSnapshot().Descendants(pid_)) tree.push_back(child);
    return tree;
  }

 private:
  pid_t pid_ = 0;
  int ready_ = -1;
};

TEST(UsageTest, MeasuresProcessorAndMemory) {
  const TestChild idle([] {});
  idle.WaitUntilDone();
  UsageMeter idle_meter;
  const Usage before = idle_meter.Read(idle.Tree());
  EXPECT_LT(before.cpu, absl::Milliseconds(200));

  const TestChild busy([] {
    Touch(64 * kMiB);
    Burn(absl::Milliseconds(500));
  });
  busy.WaitUntilDone();
  UsageMeter meter;
  const Usage usage = meter.Read(busy.Tree());
  EXPECT_GE(usage.cpu, absl::Milliseconds(470));  // ticks are 10 ms
  EXPECT_LE(usage.cpu, absl::Milliseconds(700));
  // The children share the pages of this test, which the kernel may or may not map in both.
  EXPECT_GE(*usage.memory_bytes, 64 * kMiB);
  EXPECT_LE(*usage.memory_bytes, *before.memory_bytes + 80 * kMiB);
}

TEST(UsageTest, AddsUpAllProcessesOfTheTree) {
  const TestChild parent([] {
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Touch(64 * kMiB);
      Burn(absl::Milliseconds(300));
      for (;;) ::pause();
    }
    Burn(absl::Milliseconds(300));
  });
  UsageMeter meter;
  EXPECT_TRUE(base::Eventually([&] {
    const Usage usage = meter.Read(parent.Tree());
    return usage.cpu >= absl::Milliseconds(550) && *usage.memory_bytes >= 64 * kMiB;
  }));
}

TEST(UsageTest, AChildThatEndsBetweenReadingsIsNotLostNorCountedTwice) {
  for (const bool waits : {true, false}) {
    const TestChild parent([waits] {
      // With SIGCHLD ignored, the kernel drops the times of children.
      if (!waits) ::signal(SIGCHLD, SIG_IGN);
      const pid_t child = ::fork();
      if (child == 0) {
        Burn(absl::Milliseconds(400));
        ::usleep(300'000);
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    });
    UsageMeter meter;
    absl::Duration last;
    EXPECT_TRUE(base::Eventually([&] {
      last = meter.Read(parent.Tree()).cpu;
      return last >= absl::Milliseconds(370);
    }));
    parent.WaitUntilDone();
    for (int i = 0; i < 3; ++i) {
      const absl::Duration now = meter.Read(parent.Tree()).cpu;
      EXPECT_GE(now, last);
      EXPECT_LE(now, absl::Milliseconds(600)) << "waits: " << waits;
      last = now;
    }
  }
}

TEST(UsageTest, TheLastReadingOfAnExitedProcessHasItsWholeTime) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    Burn(absl::Milliseconds(300));
    ::_exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
  UsageMeter meter;
  const Usage usage = meter.ReadLast(*ReadProcess(pid));
  EXPECT_GE(usage.cpu, absl::Milliseconds(270));
  EXPECT_LE(usage.cpu, absl::Milliseconds(500));
  EXPECT_FALSE(usage.memory_bytes.has_value());
  ::waitpid(pid, nullptr, 0);
}

TEST(UsageTest, MeasuresBytesWritten) {
  const base::TempDir temp;
  struct statfs disk {};
  ASSERT_EQ(::statfs(temp.path().c_str(), &disk), 0);
  constexpr int64_t kTmpfs = 0x01021994;
  if (disk.f_type == kTmpfs) GTEST_SKIP() << "a file system in memory has no disk to write to";
  const std::string path = base::JoinPath(temp.path(), "file");
  const TestChild child([&] {
    static char block[kMiB];
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 8; ++i) (void)!::write(fd, block, sizeof(block));
    ::fsync(fd);
  });
  child.WaitUntilDone();
  UsageMeter meter;
  const Usage usage = meter.Read(child.Tree());
  ASSERT_TRUE(usage.written_bytes.has_value());
  EXPECT_GE(*usage.written_bytes, 8 * kMiB);
  EXPECT_LE(*usage.written_bytes, 16 * kMiB);
}

TEST(UsageTest, TheNetworkIsAbsentUnlessTheTreeHasItsOwn) {
  const TestChild sharing([] {});
  UsageMeter meter;
  EXPECT_FALSE(meter.Read(sharing.Tree()).received_bytes.has_value());

  const TestChild alone([] { (void)!::unshare(CLONE_NEWNET); });
  alone.WaitUntilDone();
  if (std::filesystem::read_symlink(absl::StrCat("/proc/", alone.pid(), "/ns/net")) ==
      std::filesystem::read_symlink("/proc/self/ns/net")) {
    GTEST_SKIP() << "needs the right to make a network namespace";
  }
  UsageMeter alone_meter;
  EXPECT_EQ(alone_meter.Read(alone.Tree()).received_bytes, 0);  // it has only a loopback interface
}

TEST(UsageTest, ReadsACgroupOfItsOwn) {
  constexpr char kMount[] = "/sys/fs/cgroup/unified";
  const std::string mount =
      ::access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup" : kMount;
  const std::string folder = absl::StrCat(mount, "/muster-usage-test-", ::getpid());
  if (::mkdir(folder.c_str(), 0700) != 0) GTEST_SKIP() << "needs the right to make a cgroup";
  {
    const TestChild child([&] {
      const int fd = ::open((folder + "/cgroup.procs").c_str(), O_WRONLY);
      (void)!::write(fd, "0", 1);
    });
    child.WaitUntilDone();
    UsageMeter meter;
    meter.Read(child.Tree());
    EXPECT_EQ(CgroupFolder(child.pid()), folder);
    EXPECT_TRUE(ReadCgroup(folder).has_value());
    EXPECT_TRUE(CgroupHasOnly(folder, {child.pid()}));
    EXPECT_LT(meter.Read(child.Tree()).cpu, absl::Seconds(1));
  }
  EXPECT_TRUE(base::Eventually([&] { return ::rmdir(folder.c_str()) == 0; }));
}

}  // namespace
}  // namespace muster::process
