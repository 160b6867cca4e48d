#include "process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>

#include "base/files/files.h"
#include "base/files/unique_fd.h"
#include "gmock/gmock.h"
#include "process/exit_status.h"
#include "process/tree.h"

namespace muster::process {
namespace {

using testing::HasSubstr;

struct Result {
  ExitStatus status;
  std::string output;
};

Result RunToEnd(SpawnOptions options) {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  base::UniqueFd read_end(fds[0]), write_end(fds[1]);
  options.output_fd = write_end.get();
  auto pid = Spawn(options);
  EXPECT_TRUE(pid.ok()) << pid.status();
  write_end.Reset();
  auto output = base::ReadAll(read_end.get());
  int status = 0;
  ::waitpid(*pid, &status, 0);
  return {ExitStatus::FromWait(status), *output};
}

TEST(SpawnTest, PassesArgumentsEnvironmentDirectoryAndEmptyInput) {
  const Result result = RunToEnd({
      .argv = {"/bin/sh", "-c", "echo \"$1|$X\"; pwd; cat; echo err >&2; exit 3", "sh", "a b"},
      .env = {{"X", "y z"}, {"PATH", "/usr/bin:/bin"}},
      .working_dir = "/usr",
  });
  EXPECT_EQ(result.output, "a b|y z\n/usr\nerr\n");
  EXPECT_EQ(result.status.code(), 3);
}

TEST(SpawnTest, StderrCanBeRedirectedSeparately) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  base::UniqueFd read_end(fds[0]), write_end(fds[1]);
  const Result result =
      RunToEnd({.argv = {"/bin/sh", "-c", "echo out; echo err >&2"}, .error_fd = write_end.get()});
  write_end.Reset();
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(*base::ReadAll(read_end.get()), "err\n");
}

TEST(SpawnTest, FindsProgramsByTheChildsPath) {
  EXPECT_EQ(RunToEnd({.argv = {"echo", "hi"}, .env = {{"PATH", "/nowhere:/bin"}}}).output, "hi\n");
}

TEST(SpawnTest, ReportsWhyAProgramCannotStart) {
  const std::map<std::string, std::string> env = {{"PATH", "/bin"}};
  auto status = [&](std::vector<std::string> argv, std::string dir = "") {
    return Spawn({.argv = std::move(argv), .env = env, .working_dir = std::move(dir)}).status();
  };
  EXPECT_EQ(status({"no-such-program"}).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status({"no-such-program"}).message()),
              HasSubstr("command not found: 'no-such-program' is not in PATH (/bin)"));
  EXPECT_EQ(status({"./absent"}, "/tmp").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status({"./absent"}, "/tmp").message(),
            "command not found: '/tmp/absent' does not exist");
  EXPECT_THAT(std::string(status({"/bin/true"}, "/no/such/dir").message()),
              HasSubstr("/no/such/dir"));
  EXPECT_EQ(status({}).code(), absl::StatusCode::kInvalidArgument);

  const std::string file = testing::TempDir() + "muster-not-executable";
  ASSERT_TRUE(base::WriteFileAtomically(file, "echo hi").ok());
  EXPECT_THAT(std::string(status({file}).message()), HasSubstr("chmod +x"));
  ASSERT_EQ(::chmod(file.c_str(), 0700), 0);
  EXPECT_THAT(std::string(status({file}).message()), HasSubstr("#!/bin/sh"));
  ASSERT_TRUE(base::WriteFileAtomically(file, "#!/no/such/interpreter\n", 0700).ok());
  EXPECT_THAT(std::string(status({file}).message()), HasSubstr("interpreter"));
  std::filesystem::remove(file);
  EXPECT_TRUE(OwnChildren().empty());  // nothing is left behind
}

TEST(SpawnTest, ChildHasDefaultSignalsAndNoStrayDescriptors) {
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_IGN);
  base::UniqueFd leaked(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Result result = RunToEnd({
      .argv = {"/bin/sh", "-c", "grep SigIgn /proc/self/status; ls /proc/self/fd | wc -l"},
      .env = {{"PATH", "/usr/bin:/bin"}},
  });
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  // 0, 1, 2 and the descriptor with which ls reads the folder.
  EXPECT_THAT(result.output, HasSubstr("SigIgn:\t0000000000000000\n4\n"));
}

TEST(TreeTest, KillsGrandchildrenThatLeftTheGroupAndTheSession) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  auto pid =
      Spawn({.argv = {"/bin/sh", "-c",
                      "setsid sh -c 'setsid sleep 1000 & sleep 1000' & sleep 1000 & sleep 1000"},
             .env = {{"PATH", "/usr/bin:/bin"}, {"MUSTER_TREE_TEST", "1"}},
             .new_group = true});
  ASSERT_TRUE(pid.ok());
  // Three shells and three sleeps; a process has no environment for a moment while it executes a
  // program.
  while (ProcessesWithEnvironment("MUSTER_TREE_TEST=1").size() < 6) ::usleep(1000);
  EXPECT_EQ(ProcessSnapshot().Descendants(::getpid()).size(), 6u);
  KillAllDescendants();
  EXPECT_TRUE(ProcessSnapshot().Descendants(::getpid()).empty());
  EXPECT_TRUE(ProcessesWithEnvironment("MUSTER_TREE_TEST=1").empty());
}

TEST(TreeTest, ChildDiesWithItsParent) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t middle = ::fork();
  if (middle == 0) {
    auto pid = Spawn({.argv = {"/bin/sleep", "1000"}, .env = {}, .parent_death_signal = SIGKILL});
    (void)!::write(fds[1], &*pid, sizeof(pid_t));
    ::pause();
  }
  pid_t child = 0;
  ASSERT_EQ(::read(fds[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  ASSERT_TRUE(ReadProcess(child).ok());
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  while (true) {
    ::waitpid(-1, nullptr, WNOHANG);
    auto info = ReadProcess(child);
    if (!info.ok() || info->zombie) break;
    ::usleep(1000);
  }
  ::close(fds[0]);
  ::close(fds[1]);
}

}  // namespace
}  // namespace muster::process
