#include "platform/ssh/command.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const job::HostSpec kHost{
    .name = "gpu1", .address = "gpu1", .user = "me", .port = 2222, .key = "/k"};

TEST(SshArgvTest, NeverPromptsAndUsesTheUsersSettings) {
  const std::vector<std::string> argv = SshArgv(kHost, "echo 'x y'", Sharing::kOwn);
  const std::string text = absl::StrJoin(argv, " ");
  EXPECT_THAT(text, AllOf(HasSubstr("ssh -o BatchMode=yes"), HasSubstr(" -l me -p 2222 -i /k "),
                          HasSubstr("ControlPath=none")));
  EXPECT_THAT(std::vector<std::string>(argv.end() - 4, argv.end()),
              ElementsAre("-T", "--", "gpu1", "echo 'x y'"));
}

TEST(SshArgvTest, DifferentProgramsDoNotShareConnections) {
  const auto path = [](const char* program) {
    ::setenv("MUSTER_SSH", program, 1);
    const auto argv = SshArgv(kHost, "true", Sharing::kShared);
    ::unsetenv("MUSTER_SSH");
    for (const std::string& word : argv) {
      if (word.rfind("ControlPath=", 0) == 0) return absl::StrJoin({argv[0], argv[1], word}, " ");
    }
    return std::string();
  };
  EXPECT_THAT(path("/opt/ssh -v"), HasSubstr("/opt/ssh -v ControlPath="));
  EXPECT_EQ(path("ssh -F a"), path("ssh -F a"));
  EXPECT_NE(path("ssh -F a").substr(8), path("ssh -F b").substr(8));
}

TEST(SshArgvTest, UsesAnotherFolderIfTheSocketPathIsTooLong) {
  const std::string before = std::getenv("XDG_RUNTIME_DIR") ? std::getenv("XDG_RUNTIME_DIR") : "";
  ::setenv("XDG_RUNTIME_DIR", absl::StrCat(testing::TempDir(), std::string(60, 'r')).c_str(), 1);
  const std::string text = absl::StrJoin(SshArgv(kHost, "true", Sharing::kShared), " ");
  ::setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
  EXPECT_THAT(text, HasSubstr("ControlPath=/tmp/muster-ssh-"));
}

TEST(SshEnvironmentTest, PromptsAreDisabled) {
  const auto environment = SshEnvironment();
  EXPECT_EQ(environment.at("SSH_ASKPASS"), "/bin/false");
  EXPECT_EQ(environment.at("SSH_ASKPASS_REQUIRE"), "force");
  EXPECT_TRUE(environment.contains("PATH"));
}

TEST(ForAnyShellTest, QuotesWhatItIsGiven) {
  EXPECT_EQ(ForAnyShell("echo 'a'"), "exec sh -c 'echo '\\''a'\\'''");
}

absl::Status Why(int code, const char* said) { return ExplainSsh(kHost, code, said); }

TEST(ExplainSshTest, ErrorsHaveARemedy) {
  const absl::Status changed = Why(255,
                                   "@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n"
                                   "Host key verification failed.\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(changed));
  EXPECT_THAT(changed.message(), HasSubstr("`ssh-keygen -R '[gpu1]:2222'`"));
  EXPECT_THAT(Why(255, "Host key verification failed.\r\n").message(),
              AllOf(HasSubstr("its host key is unknown"), Not(HasSubstr("ssh-keygen"))));
  const absl::Status denied = Why(255, "me@gpu1: Permission denied (publickey).\r\n");
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_THAT(denied.message(),
              HasSubstr("`ssh -p 2222 -i /k me@gpu1` must work without a password"));
  const absl::Status down = Why(255, "ssh: connect to host gpu1 port 22: Connection refused\r\n");
  EXPECT_TRUE(absl::IsUnavailable(down));
  EXPECT_THAT(down.message(), HasSubstr("Connection refused; check that it is up"));
  EXPECT_TRUE(absl::IsNotFound(Why(255, "ssh: Could not resolve hostname gpu1: Name unknown\n")));
  EXPECT_THAT(Why(127, "sh: 1: nothing: not found").message(), HasSubstr("not found"));
  EXPECT_THAT(Why(255, "").message(), HasSubstr("connection was lost"));
  // Output of a host must not reach this terminal unescaped.
  EXPECT_THAT(Why(255, "\x1b]0;owned\x07").message(), Not(HasSubstr("\x1b")));
}

TEST(ExplainSshTest, NamesTheKeyAsKnownHostsDoes) {
  EXPECT_THAT(Why(255,
                  "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\n"
                  "Offending ED25519 key in /home/me/my hosts:3\r\n"
                  "Host key for [10.0.0.1]:2222 has changed and you have requested strict "
                  "checking.\r\nHost key verification failed.\r\n")
                  .message(),
              HasSubstr("`ssh-keygen -f '/home/me/my hosts' -R '[10.0.0.1]:2222'`"));
}

TEST(ExplainSshTest, PermissionDeniedByACommandIsNotALoginFailure) {
  const absl::Status status = Why(1, "mkdir: cannot create directory '/x': Permission denied\n");
  EXPECT_EQ(status.message(), "gpu1: mkdir: cannot create directory '/x': Permission denied");
  EXPECT_FALSE(absl::IsPermissionDenied(status));
}

TEST(ExplainSshTest, NamesTheHostThatRejectsTheLogin) {
  EXPECT_THAT(Why(255,
                  "me@jump: Permission denied (publickey,password).\r\n"
                  "Connection closed by UNKNOWN port 65535\r\n")
                  .message(),
              HasSubstr("(me@jump: Permission denied (publickey,password).)"));
}

}  // namespace
}  // namespace muster::ssh
