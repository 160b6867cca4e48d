#include "supervise/exit_cause.h"

#include <csignal>

#include "gmock/gmock.h"

namespace muster::supervise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ExitCauseTest, SuccessNeedsNoExplanation) {
  const AttemptEnd end = ExplainExit(process::ExitStatus::Exited(0), {.last_lines = {"done"}});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_THAT(end.last_lines, IsEmpty());
}

TEST(ExitCauseTest, AnExitCodeOrASignalIsTheCause) {
  const AttemptEnd code = ExplainExit(process::ExitStatus::Exited(3), {.last_lines = {"a", "b"}});
  EXPECT_EQ(code.reason, "exit code 3");
  EXPECT_EQ(code.exit_code, 3);
  EXPECT_TRUE(code.may_retry);
  EXPECT_THAT(code.last_lines, ElementsAre("a", "b"));
  const AttemptEnd signal = ExplainExit(process::ExitStatus::Signaled(SIGSEGV), {});
  EXPECT_THAT(signal.reason, HasSubstr("SIGSEGV"));
  EXPECT_EQ(signal.exit_code, 139);
}

TEST(ExitCauseTest, OutOfMemoryIsDistinguishedFromOtherKills) {
  const AttemptEnd oom = ExplainExit(process::ExitStatus::Signaled(SIGKILL), {.oom_killed = true});
  EXPECT_THAT(oom.reason, HasSubstr("out of memory"));
  EXPECT_THAT(oom.advice, HasSubstr("smaller batch"));
  EXPECT_THAT(ExplainExit(process::ExitStatus::Signaled(SIGKILL), {}).reason,
              Not(HasSubstr("memory")));
  EXPECT_THAT(ExplainExit(process::ExitStatus::Signaled(SIGTERM), {.oom_killed = true}).reason,
              Not(HasSubstr("memory")));
}

TEST(ExitCauseTest, APortInUseIsFoundInTheOutput) {
  for (const char* line :
       {"OSError: [Errno 98] Address already in use", "Error: listen EADDRINUSE: :::2222",
        "E0000 Failed to bind to 127.0.0.1:2222", "bind: address in use",
        "E0000 Failed to add port to server: No address added out of total 1 resolved for "
        "'0.0.0.0:2222'"}) {
    const AttemptEnd end =
        ExplainExit(process::ExitStatus::Exited(1), {.last_lines = {line, "bye"}, .port = 2222});
    EXPECT_EQ(end.reason, "port in use (exit code 1)") << line;
    EXPECT_THAT(end.advice, HasSubstr("2222"));
    EXPECT_FALSE(end.port_taken);
  }
  EXPECT_TRUE(
      ExplainExit(process::ExitStatus::Exited(1),
                  {.last_lines = {"Address already in use"}, .port = 2222, .port_is_ours = true})
          .port_taken);
  EXPECT_EQ(ExplainExit(process::ExitStatus::Exited(1),
                        {.last_lines = {"failed to bind the texture"}, .port = 2222})
                .reason,
            "exit code 1");
}

TEST(ExitCauseTest, ACommandThatTheShellCannotRunIsNotRetried) {
  const AttemptEnd missing = ExplainExit(process::ExitStatus::Exited(127), {.runs_shell = true});
  EXPECT_THAT(missing.reason, HasSubstr("command not found"));
  EXPECT_FALSE(missing.may_retry);
  const AttemptEnd forbidden = ExplainExit(process::ExitStatus::Exited(126), {.runs_shell = true});
  EXPECT_THAT(forbidden.reason, HasSubstr("not executable"));
  EXPECT_FALSE(forbidden.may_retry);
  EXPECT_TRUE(ExplainExit(process::ExitStatus::Exited(127), {.runs_shell = false}).may_retry);
}

std::string ReasonOf(const std::string& error_file, std::vector<std::string> last_lines = {}) {
  return ExplainExit(process::ExitStatus::Exited(1),
                     {.last_lines = std::move(last_lines), .error_file = error_file})
      .reason;
}

TEST(ExitCauseTest, TheErrorFileOfATorchRankIsReadInBothForms) {
  EXPECT_EQ(ReasonOf(R"({"message": "ValueError: bad shape"})"),
            "exit code 1: ValueError: bad shape");
  EXPECT_EQ(ReasonOf(R"({"message": {"message": "RuntimeError: NCCL\nmore",
                         "extraInfo": {"py_callstack": "…", "timestamp": "1"}}})"),
            "exit code 1: RuntimeError: NCCL");
}

TEST(ExitCauseTest, AnErrorFileThatIsGarbageIsIgnored) {
  for (const std::string& text :
       {std::string("{"), std::string("\xff\xfe"), std::string("[]"), std::string("null"),
        std::string("{}"), std::string(R"({"message": 7})"), std::string(R"({"message": {}})"),
        std::string(R"({"message": {"message": []}})"), std::string(R"({"message": ""})"),
        std::string(R"({"message": "\n\n"})"), std::string("{\"message\": \"a\xff\"}")}) {
    EXPECT_EQ(ReasonOf(text), "exit code 1") << text;
  }
}

TEST(ExitCauseTest, AMessageCannotFloodOrConfuseTheTerminal) {
  const std::string reason =
      ReasonOf("{\"message\": \"\\u001b[2J" + std::string(100'000, 'x') + "\"}");
  EXPECT_LT(reason.size(), 400u);
  EXPECT_THAT(reason, Not(HasSubstr("\x1b[2J")));
}

TEST(ExitCauseTest, TheLastExceptionIsTheCause) {
  EXPECT_EQ(ReasonOf("", {"Traceback:", "  File …", "ValueError: bad shape", ""}),
            "exit code 1: ValueError: bad shape");
  EXPECT_EQ(ReasonOf("", {"torch.OutOfMemoryError: CUDA"}),
            "exit code 1: torch.OutOfMemoryError: CUDA");
  EXPECT_EQ(ReasonOf("", {"ValueError: handled", "going on"}), "exit code 1");
  EXPECT_EQ(ReasonOf("", {"no Error: here"}), "exit code 1");
}

TEST(ExitCauseTest, SpawnFailuresAreRetriedIfTheyMayPass) {
  const AttemptEnd missing =
      ExplainSpawnFailure(absl::NotFoundError("command not found: 'x'"), "worker");
  EXPECT_FALSE(missing.may_retry);
  EXPECT_FALSE(missing.exit_code.has_value());
  EXPECT_EQ(missing.reason, "command not found: 'x'");
  EXPECT_THAT(missing.advice, HasSubstr("'worker'"));
  const AttemptEnd busy = ExplainSpawnFailure(absl::UnavailableError("fork: try again"), "worker");
  EXPECT_TRUE(busy.may_retry);
  EXPECT_THAT(busy.advice, HasSubstr("muster doctor"));
}

}  // namespace
}  // namespace muster::supervise
