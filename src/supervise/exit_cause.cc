#include "supervise/exit_cause.h"

#include <signal.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/text/json.h"
#include "base/text/terminal_text.h"
#include "nlohmann/json.hpp"

namespace muster::supervise {
namespace {

constexpr int kMaxCauseLength = 300;

// Returns the message in a failed rank's error file, {"message": "…"} or {"message": {"message":
// "…", …}}; "" if there is none.
std::string MessageOfErrorFile(const std::string& content) {
  const auto json = base::ParseJson(content);
  if (!json.is_object() || !json.contains("message")) return "";
  const auto& message = json["message"];
  if (message.is_string()) return message.get<std::string>();
  if (message.is_object() && message.contains("message") && message["message"].is_string()) {
    return message["message"].get<std::string>();
  }
  return "";
}

// Returns the last non-blank line if it is a Python or C++ exception, such as "ValueError: bad
// shape", or else "".
std::string LastException(const std::vector<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (absl::StripAsciiWhitespace(*line).empty()) continue;
    const absl::string_view name = absl::string_view(*line).substr(0, line->find(':'));
    const bool is_name = name.size() < line->size() && name.find(' ') == absl::string_view::npos;
    if (is_name && (absl::EndsWith(name, "Error") || absl::EndsWith(name, "Exception")))
      return *line;
    return "";
  }
  return "";
}

// gRPC, of which TensorFlow is one user, reports a failed bind with the address and no cause.
bool IsFailedBind(absl::string_view lower_case_line) {
  return absl::StrContains(lower_case_line, "failed to bind") ||
         absl::StrContains(lower_case_line, "no address added out of total");
}

bool MentionsAddressInUse(const std::vector<std::string>& lines, int port) {
  for (const std::string& line : lines) {
    const std::string lower = absl::AsciiStrToLower(line);
    if (absl::StrContains(lower, "address already in use") ||
        absl::StrContains(lower, "eaddrinuse") || absl::StrContains(lower, "address in use") ||
        (IsFailedBind(lower) && absl::StrContains(line, absl::StrCat(port)))) {
      return true;
    }
  }
  return false;
}

}  // namespace

AttemptEnd ExplainExit(const process::ExitStatus& status, const ExitEvidence& evidence) {
  AttemptEnd end{.exit_code = status.code(), .reason = status.Describe()};
  if (status.ok()) return end;
  end.last_lines = evidence.last_lines;
  // The OOM-kill count covers the whole machine, so it counts only together with SIGKILL.
  if (evidence.oom_killed && status.signal() == SIGKILL) {
    end.reason = "out of memory: the kernel killed it (SIGKILL)";
    end.advice = "use a smaller batch or fewer tasks per machine, or give it more memory";
    return end;
  }
  if (MentionsAddressInUse(evidence.last_lines, evidence.port)) {
    end.reason = absl::StrCat("port in use (", status.Describe(), ")");
    end.advice = absl::StrCat("`ss -ltnp` lists the listeners; Muster assigned this task port ",
                              evidence.port, " (in TF_CONFIG, MASTER_PORT and {port})");
    end.port_taken = evidence.port_is_ours;
    return end;
  }
  if (status.code() == 127 && evidence.runs_shell) {
    end.reason = "command not found (exit code 127)";
    end.advice = "the last line names it; install it or correct the command";
    end.may_retry = false;
    return end;
  }
  if (status.code() == 126 && evidence.runs_shell) {
    end.reason = "command not executable (exit code 126)";
    end.advice = "chmod +x makes a script executable";
    end.may_retry = false;
    return end;
  }
  std::string message = MessageOfErrorFile(evidence.error_file);
  if (message.empty()) message = LastException(evidence.last_lines);
  const absl::string_view said = absl::StripAsciiWhitespace(message);
  if (!said.empty()) {
    const absl::string_view first_line = said.substr(0, said.find('\n'));
    end.reason = base::Ellipsize(base::Printable(absl::StrCat(end.reason, ": ", first_line)),
                                 kMaxCauseLength);
  }
  return end;
}

AttemptEnd ExplainSpawnFailure(const absl::Status& status, const std::string& role) {
  AttemptEnd end{.reason = base::Printable(status.message())};
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      end.may_retry = false;
      end.advice = absl::StrCat("correct `command` or `working_dir` of role '", role,
                                "', or install the program");
      break;
    default:
      end.advice =
          "this machine is short of processes, memory or files: `muster doctor` shows which";
  }
  return end;
}

int64_t OomKillCount() {
  const auto text = base::ReadFile("/proc/vmstat");
  if (!text.ok()) return 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    int64_t count = 0;
    if (absl::ConsumePrefix(&line, "oom_kill ") && absl::SimpleAtoi(line, &count)) return count;
  }
  return 0;
}

}  // namespace muster::supervise
