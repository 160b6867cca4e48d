#include "platform/ssh/setup_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "base/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "platform/ssh/protocol.h"
#include "process/run.h"
#include "process/spawn.h"

namespace muster::ssh {
namespace {

constexpr char kNone[] = "muster-agent missing ";
constexpr char kInstalled[] = "muster-agent brought\n";
constexpr absl::Duration kRetryTimeout = absl::Seconds(4);
constexpr absl::Duration kFirstRetryDelay = absl::Milliseconds(300);
constexpr absl::Duration kInterruptInterval = absl::Milliseconds(200);
constexpr absl::Duration kSetupTimeout = absl::Seconds(40);
constexpr absl::Duration kInstallTimeout = absl::Minutes(5);
constexpr absl::Duration kPieceTimeout = absl::Minutes(2);
constexpr absl::Duration kExitTimeout = absl::Seconds(2);
constexpr size_t kPieceBytes = 1 << 20;
constexpr int kMaxOutstanding = 64;

std::string Folder() { return "\"${XDG_CACHE_HOME:-$HOME/.cache}/muster\""; }

}  // namespace

std::string RemotePath(const platform::AgentProgram& agent) {
  return absl::StrCat(Folder(), "/agent-", agent.sha256.substr(0, 16));
}

absl::StatusOr<std::unique_ptr<SetupClient>> SetupClient::Open(
    const job::HostSpec& host, const platform::AgentProgram& agent,
    const std::function<bool()>& interrupted) {
  const absl::Time last_try = base::Clock::Real().Now() + kRetryTimeout;
  std::random_device random;
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  // Retries use their own connection: over a shared one ssh does not print the errors of a jump
  // host.
  Sharing sharing = Sharing::kShared;
  for (absl::Duration delay = kFirstRetryDelay;; delay *= 2) {
    std::unique_ptr<SetupClient> session(
        new SetupClient(host, std::exchange(sharing, Sharing::kOwn), interrupted));
    const absl::Status opened = session->TryToOpen(agent);
    if (opened.ok()) return session;
    if (!absl::IsUnavailable(opened) || base::Clock::Real().Now() >= last_try) return opened;
    absl::SleepFor(delay * jitter(random));
  }
}

absl::Status SetupClient::TryToOpen(const platform::AgentProgram& agent) {
  MUSTER_ASSIGN_OR_RETURN(const Found found, Begin(agent));
  if (found == Found::kAgent) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Install(agent));
  MUSTER_ASSIGN_OR_RETURN(const Found again, Begin(agent));
  if (again == Found::kAgent) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      host_.name,
      ": cannot execute the agent in ~/.cache/muster there; if it is mounted with noexec, set "
      "XDG_CACHE_HOME on the host to a folder where programs may run"));
}

SetupClient::~SetupClient() {
  to_.Reset();
  End();
}

// ssh is killed, because processes left on the host may keep the connection open.
void SetupClient::End() {
  if (pid_ != 0) process::WaitOrKill(std::exchange(pid_, 0), absl::ZeroDuration());
}

absl::Status SetupClient::Start(const std::string& command, int input) {
  MUSTER_ASSIGN_OR_RETURN(process::Pipe in, process::MakePipe());
  MUSTER_ASSIGN_OR_RETURN(process::Pipe out, process::MakePipe());
  stderr_ = base::UniqueFd(::memfd_create("ssh", MFD_CLOEXEC));
  MUSTER_ASSIGN_OR_RETURN(pid_, process::Spawn({.argv = SshArgv(host_, command, sharing_),
                                                .env = SshEnvironment(),
                                                .stdin_fd = input < 0 ? in.read.get() : input,
                                                .output_fd = out.write.get(),
                                                .error_fd = stderr_.get(),
                                                .new_session = true}));
  ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  from_ = std::move(out.read);
  to_ = std::move(in.write);
  if (input >= 0) to_.Reset();
  return absl::OkStatus();
}

absl::Status SetupClient::ExitReason() {
  if (pid_ == 0) {
    return absl::UnavailableError(absl::StrCat(host_.name, ": the connection is lost"));
  }
  const process::ExitStatus exit = process::WaitOrKill(std::exchange(pid_, 0), kExitTimeout);
  ::lseek(stderr_.get(), 0, SEEK_SET);
  const std::string error_output = base::ReadAll(stderr_.get(), 1 << 20).value_or("");
  return ExplainSsh(host_, exit.ok() || exit.signal() != 0 ? 255 : exit.code(), error_output);
}

absl::StatusOr<SetupClient::Found> SetupClient::Begin(const platform::AgentProgram& agent) {
  MUSTER_RETURN_IF_ERROR(
      Start(ForAnyShell(absl::StrCat("f=", RemotePath(agent),
                                     "; if test -x \"$f\" && test \"$(wc -c <\"$f\")\" -eq ",
                                     agent.size, "; then exec \"$f\" session; fi; echo \"", kNone,
                                     "$(uname -s) $(uname -m)\"")),
            -1));
  decoder_ = Decoder(kPreface);
  std::string received;
  const absl::Time deadline = base::Clock::Real().Now() + kSetupTimeout;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, Read(deadline));
    absl::StrAppend(&received, bytes);
    decoder_.Add(bytes);
    if (absl::StrContains(received, kPreface)) return Found::kAgent;
    const size_t at = received.find(kNone);
    const size_t end = at == std::string::npos ? at : received.find('\n', at);
    if (end == std::string::npos) continue;
    utsname here{};
    ::uname(&here);
    const std::string mine = absl::StrCat(here.sysname, " ", here.machine);
    const std::string its = received.substr(at + sizeof(kNone) - 1, end - at - sizeof(kNone) + 1);
    End();
    if (its == mine) return Found::kNone;
    return absl::FailedPreconditionError(
        absl::StrCat(host_.name, " is ", its, ", but this muster is for ", mine,
                     "; a job needs hosts of the same architecture"));
  }
}

absl::Status SetupClient::Install(const platform::AgentProgram& agent) {
  const base::UniqueFd file(::open(agent.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return absl::ErrnoToStatus(errno, agent.path);
  // The file is renamed into place only when its size is right, so a truncated transfer is never
  // used.
  MUSTER_RETURN_IF_ERROR(
      Start(ForAnyShell(
                absl::StrCat("umask 077; d=", Folder(),
                             "; t=\"$d/.agent.$(uname -n).$$\"; mkdir -p \"$d\" && cat >\"$t\" && ",
                             "test \"$(wc -c <\"$t\")\" -eq ", agent.size,
                             " && chmod 700 \"$t\" && mv \"$t\" ", RemotePath(agent), " && echo ",
                             absl::StripSuffix(kInstalled, "\n"), " || { rm -f \"$t\"; exit 1; }")),
            file.get()));
  std::string received;
  const absl::Time deadline = base::Clock::Real().Now() + kInstallTimeout;
  while (!absl::StrContains(received, kInstalled)) {
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, Read(deadline));
    absl::StrAppend(&received, bytes);
  }
  End();
  return absl::OkStatus();
}

absl::Status SetupClient::Wait(int fd, short events, absl::Time deadline,
                               absl::string_view too_late) const {
  for (;;) {
    if (interrupted_()) return absl::CancelledError("interrupted");
    const absl::Duration left = deadline - base::Clock::Real().Now();
    if (left <= absl::ZeroDuration()) {
      return absl::UnavailableError(absl::StrCat(host_.name, ": ", too_late));
    }
    pollfd waits{fd, events, 0};
    const absl::Duration slice = std::min(left, kInterruptInterval);
    if (::poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(slice)) + 1) > 0) {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<std::string> SetupClient::Read(absl::Time deadline) {
  std::array<char, 65536> buffer;
  for (;;) {
    MUSTER_RETURN_IF_ERROR(Wait(from_.get(), POLLIN, deadline,
                                "timed out waiting for an answer; check that it is up"));
    const ssize_t n = ::read(from_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ExitReason();
    return std::string(buffer.data(), static_cast<size_t>(n));
  }
}

absl::Status SetupClient::Write(absl::string_view bytes, absl::Time deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to_.get(), bytes.data(), bytes.size());
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      MUSTER_RETURN_IF_ERROR(Wait(to_.get(), POLLOUT, deadline, "timed out sending data"));
    } else if (errno != EINTR) {
      return ExitReason();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> SetupClient::Call(const Json& head, absl::string_view body,
                                       absl::Duration timeout) {
  // Answers arrive in order; those to pieces of files precede the one to this request.
  MUSTER_RETURN_IF_ERROR(Settle(0));
  if (pid_ == 0) return ExitReason();
  const absl::Time deadline = base::Clock::Real().Now() + timeout;
  MUSTER_RETURN_IF_ERROR(Write(Encode(head, body), deadline));
  return Answer(deadline);
}

absl::StatusOr<Json> SetupClient::Answer(absl::Time deadline) {
  for (;;) {
    auto message = decoder_.Next();
    if (message.ok()) {
      const std::string error = base::TextMember(message->head, "error");
      if (error.empty()) return std::move(message->head);
      const auto code = static_cast<absl::StatusCode>(base::IntMember(message->head, "code"));
      return absl::Status(code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code,
                          absl::StrCat(host_.name, ": ", error));
    }
    if (!absl::IsNotFound(message.status())) return message.status();
    MUSTER_ASSIGN_OR_RETURN(const std::string bytes, Read(deadline));
    decoder_.Add(bytes);
  }
}

absl::Status SetupClient::Settle(int outstanding) {
  while (outstanding_ > outstanding) {
    --outstanding_;
    MUSTER_RETURN_IF_ERROR(Answer(base::Clock::Real().Now() + kPieceTimeout).status());
  }
  return absl::OkStatus();
}

absl::Status SetupClient::SendFile(const std::string& path, const worktree::WorkFile& file) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  const bool as_hashed =
      worktree::IsUnchangedSinceHash(fd.get(), file);  // otherwise the content is hashed again
  base::Sha256 digest;
  std::string piece(kPieceBytes, '\0');
  int64_t at = 0;
  for (bool last = false; !last;) {
    size_t size = 0;
    while (size < kPieceBytes && !last) {
      const ssize_t n = ::read(fd.get(), piece.data() + size, kPieceBytes - size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return absl::ErrnoToStatus(errno, path);
      last = n == 0;
      size += static_cast<size_t>(n);
    }
    const auto bytes = absl::string_view(piece).substr(0, size);
    if (!as_hashed) digest.Update(bytes);
    // The last piece is withheld if the file has changed, so the host never completes a wrong blob.
    const bool is_whole = !last || (as_hashed ? worktree::IsUnchangedSinceHash(fd.get(), file)
                                              : digest.Finish() == file.sha256);
    if (!is_whole) {
      return absl::AbortedError(absl::StrCat(path, " changed while it was sent; run again"));
    }
    MUSTER_RETURN_IF_ERROR(Settle(kMaxOutstanding));
    const Json head = {{"op", "put"}, {"sha256", file.sha256}, {"at", at}, {"last", last}};
    const absl::Time deadline = base::Clock::Real().Now() + kPieceTimeout;
    MUSTER_RETURN_IF_ERROR(Write(EncodeHead(head, size), deadline));
    MUSTER_RETURN_IF_ERROR(Write(bytes, deadline));
    at += static_cast<int64_t>(size);
    ++outstanding_;
  }
  return absl::OkStatus();
}

}  // namespace muster::ssh
