// muster top: the jobs, live, on the whole terminal.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/time/clock.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/terminal/full_screen.h"
#include "cli/top/feed.h"
#include "cli/top/screen.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

// Ages and remaining times change without new data.
constexpr absl::Duration kRedrawInterval = absl::Seconds(1);
// The Escape key is an escape sequence that nothing follows.
constexpr absl::Duration kEscapeTimeout = absl::Milliseconds(50);

// The event loop: keys, signals and new data change the model, which is then drawn.
class Top {
 public:
  Top(Context& context, base::UniqueFd signals, TopFeed& feed)
      : terminal_(context.out()), signals_(std::move(signals)), feed_(feed) {}

  absl::StatusOr<int> Run();

 private:
  void Draw();
  void Wait();
  void ReadKeys();
  absl::Status HandleSignals();
  absl::Status Suspend();

  Terminal& terminal_;
  const base::UniqueFd signals_;
  TopFeed& feed_;
  TopModel model_;
  KeyDecoder keys_;
  FullScreen screen_;
  std::optional<int> code_;  // set: quit
};

void Top::Draw() {
  const ScreenSize size{terminal_.width(), terminal_.height()};
  if (size != model_.screen()) {
    model_.Resize(size);
    screen_.Invalidate();
  }
  feed_.Want(model_.VisibleJobs(), model_.open_id());
  screen_.Draw(DrawTop(model_, terminal_, absl::Now()), size.columns);
}

void Top::Wait() {
  pollfd waiting[3] = {{.fd = STDIN_FILENO, .events = POLLIN},
                       {.fd = signals_.get(), .events = POLLIN},
                       {.fd = feed_.fd(), .events = POLLIN}};
  const absl::Duration timeout = keys_.pending() ? kEscapeTimeout : kRedrawInterval;
  ::poll(waiting, 3, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (waiting[0].revents != 0) {
    ReadKeys();
  } else if (keys_.pending()) {
    for (const KeyPress& key : keys_.Flush()) model_.Press(key);
  }
  if (waiting[2].revents != 0) {
    TopFeed::Snapshot snapshot = feed_.Take();
    if (snapshot.jobs != nullptr) model_.SetJobs(std::move(snapshot.jobs));
    model_.SetDetails(std::move(snapshot.details));
    model_.SetOpen(std::move(snapshot.open));
    if (!snapshot.message.empty()) model_.SetMessage(std::move(snapshot.message));
  }
}

void Top::ReadKeys() {
  char buffer[256];
  const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof(buffer));
  if (n <= 0) {
    code_ = kFailure;  // the terminal is gone
    return;
  }
  for (const KeyPress& key : keys_.Feed({buffer, static_cast<size_t>(n)})) {
    const TopAction action = model_.Press(key);
    if (action.kind == TopAction::Kind::kQuit) code_ = kSuccess;
    if (action.kind == TopAction::Kind::kRedraw) screen_.Invalidate();
    if (action.kind == TopAction::Kind::kStop) feed_.Stop(action.job);
    if (code_.has_value()) return;
  }
}

// Gives the terminal back while the process is stopped.
absl::Status Top::Suspend() {
  screen_.Leave();
  ::kill(::getpid(), SIGSTOP);
  return screen_.Enter();
}

absl::Status Top::HandleSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    switch (info.ssi_signo) {
      case SIGTSTP:
        MUSTER_RETURN_IF_ERROR(Suspend());
        break;
      case SIGCONT:
      case SIGWINCH:
        screen_.Invalidate();
        break;
      default:
        code_ = 128 + static_cast<int>(info.ssi_signo);
        break;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Top::Run() {
  MUSTER_RETURN_IF_ERROR(screen_.Enter());
  while (!code_.has_value()) {
    Draw();
    Wait();
    MUSTER_RETURN_IF_ERROR(HandleSignals());
  }
  screen_.Leave();
  return *code_;
}

absl::StatusOr<int> RunTop(Context& context) {
  if (!context.out().can_redraw() || ::isatty(STDIN_FILENO) == 0) {
    return absl::FailedPreconditionError(
        "top needs a terminal that can be redrawn; `muster jobs` lists jobs without one, `muster "
        "jobs --json` and `muster show --json JOB` for programs");
  }
  // Blocked before the threads of the feed start.
  const process::HeldSignals held{SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};
  base::UniqueFd signals(::signalfd(-1, &held.set(), SFD_CLOEXEC | SFD_NONBLOCK));
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<TopFeed> feed, TopFeed::Start(context));
  return Top(context, std::move(signals), *feed).Run();
}

}  // namespace

void AddTopCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("top", "Show all jobs live on the terminal");
  command.Footer(
      "Keys: up, down, PgUp, PgDn, Home, End select a job; enter opens it, esc returns; "
      "/ filters;\na shows only active jobs; s stops the job; ? lists the keys; q quits.");
  command.OnCall([&context] { return RunTop(context); });
}

}  // namespace muster::cli
