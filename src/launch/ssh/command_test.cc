#include "launch/ssh/command.h"

#include <cstdlib>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::ssh {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const HostSpec kHost{.name = "gpu1", .address = "gpu1", .user = "me", .port = 2222, .key = "/k"};

TEST(SshArgvTest, NeverAsksAndTakesTheUsersWord) {
  const std::vector<std::string> argv = SshArgv(kHost, "echo 'x y'", Sharing::kOwn);
  const std::string text = absl::StrJoin(argv, " ");
  EXPECT_THAT(text, AllOf(HasSubstr("ssh -o BatchMode=yes"), HasSubstr(" -l me -p 2222 -i /k "),
                          HasSubstr("ControlPath=none")));
  EXPECT_THAT(std::vector<std::string>(argv.end() - 4, argv.end()),
              ElementsAre("-T", "--", "gpu1", "echo 'x y'"));
}

TEST(SshArgvTest, AnotherProgramHasConnectionsOfItsOwn) {
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

TEST(ForAnyShellTest, QuotesWhatItIsGiven) {
  EXPECT_EQ(ForAnyShell("echo 'a'"), "exec sh -c 'echo '\\''a'\\'''");
}

TEST(ExplainSshTest, SaysWhatToDo) {
  const auto why = [](int code, const char* said) { return ExplainSsh(kHost, code, said); };
  const absl::Status changed = why(255,
                                   "@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n"
                                   "Host key verification failed.\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(changed));
  EXPECT_THAT(changed.message(), HasSubstr("ssh-keygen -R gpu1"));
  EXPECT_THAT(why(255, "Host key verification failed.\r\n").message(),
              AllOf(HasSubstr("not known yet"), Not(HasSubstr("ssh-keygen"))));
  const absl::Status denied = why(255, "me@gpu1: Permission denied (publickey).\r\n");
  EXPECT_TRUE(absl::IsPermissionDenied(denied));
  EXPECT_THAT(denied.message(), HasSubstr("must work without a password"));
  const absl::Status down = why(255, "ssh: connect to host gpu1 port 22: Connection refused\r\n");
  EXPECT_TRUE(absl::IsUnavailable(down));
  EXPECT_THAT(down.message(), HasSubstr("Connection refused; is it up"));
  EXPECT_TRUE(absl::IsNotFound(why(255, "ssh: Could not resolve hostname gpu1: Name unknown\n")));
  EXPECT_THAT(why(127, "sh: 1: nothing: not found").message(), HasSubstr("not found"));
  EXPECT_THAT(why(255, "").message(), HasSubstr("connection was lost"));
  // What a host prints is not for this terminal.
  EXPECT_THAT(why(255, "\x1b]0;owned\x07").message(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace muster::ssh
