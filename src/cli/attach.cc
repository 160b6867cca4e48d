#include "cli/attach.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/report.h"

namespace muster::cli {
namespace {

// How often a rewritten line (a progress bar) is shown while it has no end yet.
constexpr absl::Duration kPartialInterval = absl::Seconds(1);
// Whether the supervisor still lives is looked at this often when it says nothing.
constexpr absl::Duration kLivenessInterval = absl::Seconds(5);

class Attachment {
 public:
  Attachment(Context& context, JobRecord job, const AttachOptions& options)
      : context_(context),
        job_(std::move(job)),
        options_(options),
        view_(context.out(), options.view) {}
  ~Attachment() { ::sigprocmask(SIG_SETMASK, &previous_mask_, nullptr); }

  absl::StatusOr<int> Run(std::unique_ptr<LogStream> stream);

 private:
  absl::Status Start(std::unique_ptr<LogStream> stream);
  absl::Status ReadNews();
  absl::Status TakeTasks();
  void ShowStarting();
  void LeaveStartingTable() { table_lines_ = 0; }
  void Wait();
  absl::Status HandleInterrupt();
  int Finish();

  Context& context_;
  JobRecord job_;
  const AttachOptions options_;
  LogView view_;
  History* history_ = nullptr;
  Platform* platform_ = nullptr;
  std::unique_ptr<LogStream> stream_;
  std::unique_ptr<JobWatch> watch_;
  UniqueFd signals_;
  sigset_t previous_mask_{};
  int64_t last_event_ = 0;
  int interrupts_ = 0;
  bool was_up_ = false;
  int table_lines_ = 0;  // of the live table on the terminal
  absl::Time partial_at_;
  absl::Time liveness_at_;
};

absl::Status Attachment::Start(std::unique_ptr<LogStream> stream) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, &previous_mask_);
  signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  MUSTER_ASSIGN_OR_RETURN(history_, context_.history());
  MUSTER_ASSIGN_OR_RETURN(platform_, context_.platform(job_.platform));
  stream_ = std::move(stream);
  if (stream_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(stream_, platform_->Logs(job_, options_.tasks));
  }
  // A job that has ended has nobody to watch; its record says the rest.
  if (auto watch = platform_->Watch(job_); watch.ok()) watch_ = *std::move(watch);
  partial_at_ = absl::Now() + kPartialInterval;
  liveness_at_ = absl::Now() + kLivenessInterval;
  return absl::OkStatus();
}

// Tasks may join while the job runs.
absl::Status Attachment::TakeTasks() {
  if (!options_.tasks.empty()) {
    for (const TaskId& task : options_.tasks) view_.Expect(task);
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const auto tasks, history_->Tasks(job_.id));
  for (const TaskRecord& task : tasks) {
    view_.Expect(task.id);
    stream_->AddTask(task.id);
  }
  return absl::OkStatus();
}

// On a terminal, a table that is drawn anew in its place until every task is up.
void Attachment::ShowStarting() {
  Terminal& err = context_.err();
  if (!options_.show_events || was_up_ || !err.is_terminal()) return;
  const auto tasks = history_->Tasks(job_.id);
  if (!tasks.ok()) return;
  constexpr size_t kMostRows = 30;  // a taller table would scroll away instead of being redrawn
  if (tasks->size() > kMostRows) return;
  std::string text;
  if (table_lines_ > 0) text = absl::StrCat("\x1b[", table_lines_, "A\x1b[J");
  absl::StrAppend(&text, TaskTable(err, *tasks, absl::Now()));
  err.Print(text);
  err.Flush();
  table_lines_ = static_cast<int>(tasks->size()) + 1;
}

absl::Status Attachment::ReadNews() {
  MUSTER_ASSIGN_OR_RETURN(job_, history_->GetJob(job_.id));
  MUSTER_RETURN_IF_ERROR(TakeTasks());
  MUSTER_ASSIGN_OR_RETURN(const auto events, history_->Events(job_.id, last_event_));
  if (events.empty()) return absl::OkStatus();
  ShowStarting();
  Terminal& err = context_.err();
  for (const Event& event : events) {
    last_event_ = event.sequence;
    const bool up = absl::StartsWith(event.message, "Running:");
    // The table has shown the tasks coming up; the verdict is told at the end.
    const bool shown_otherwise = (err.is_terminal() && !was_up_ && event.message == "running") ||
                                 (event.kind == "job" && !up);
    if (up) was_up_ = true;
    if (!options_.show_events || shown_otherwise) continue;
    LeaveStartingTable();
    err.Note(event.subject.empty() ? event.message
                                   : absl::StrCat(event.subject, " ", event.message));
  }
  err.Flush();
  return absl::OkStatus();
}

void Attachment::Wait() {
  pollfd waiting[3] = {{.fd = stream_->fd(), .events = POLLIN},
                       {.fd = signals_.get(), .events = POLLIN},
                       {.fd = watch_ == nullptr ? -1 : watch_->fd(), .events = POLLIN}};
  const absl::Duration patience = std::min(partial_at_, liveness_at_) - absl::Now();
  const int64_t ms = std::clamp<int64_t>(absl::ToInt64Milliseconds(patience) + 1, 0, 10'000);
  ::poll(waiting, 3, static_cast<int>(ms));
  if (watch_ != nullptr && waiting[2].revents != 0 && !watch_->Drain()) watch_.reset();
}

absl::Status Attachment::HandleInterrupt() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    ++interrupts_;
    if (!options_.owns_job) continue;
    LeaveStartingTable();
    context_.err().Note(interrupts_ == 1 ? "stopping the job; Ctrl-C again ends it at once"
                                         : "ending the job at once");
    context_.err().Flush();
    const absl::Status status = platform_->Stop(job_, /*at_once=*/interrupts_ > 1);
    if (!status.ok() && watch_ != nullptr) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Attachment::Run(std::unique_ptr<LogStream> stream) {
  MUSTER_RETURN_IF_ERROR(Start(std::move(stream)));
  for (;;) {
    // Looked at before the logs are read: what a job wrote before it ended is complete then.
    const bool ended = watch_ == nullptr;
    MUSTER_RETURN_IF_ERROR(ReadNews());
    stream_->Acknowledge();
    while (const auto line = stream_->Next()) {
      LeaveStartingTable();
      view_.Print(*line);
      if (!context_.out().ok()) return kSuccess;
    }
    if (partial_at_ <= absl::Now()) {
      partial_at_ = absl::Now() + kPartialInterval;
      view_.PrintPartials(*stream_);
    }
    context_.out().Flush();
    if (ended) return Finish();
    Wait();
    MUSTER_RETURN_IF_ERROR(HandleInterrupt());
    if (interrupts_ > 0 && !options_.owns_job) return kInterrupted;
    if (liveness_at_ <= absl::Now()) {
      liveness_at_ = absl::Now() + kLivenessInterval;
      if (platform_->Check(job_) == Liveness::kGone) watch_.reset();
    }
  }
}

int Attachment::Finish() {
  view_.PrintPartials(*stream_);
  Refresh(context_, job_).IgnoreError();
  Terminal& err = context_.err();
  if (options_.show_events) err.Print(Verdict(err, job_));
  err.Flush();
  if (interrupts_ > 0) return kInterrupted;
  return job_.state == JobState::kSucceeded ? kSuccess : kFailure;
}

}  // namespace

HeldInterrupts::HeldInterrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, &previous_);
}

HeldInterrupts::~HeldInterrupts() { ::sigprocmask(SIG_SETMASK, &previous_, nullptr); }

int Attach(Context& context, const JobRecord& job, const AttachOptions& options,
           std::unique_ptr<LogStream> stream) {
  Attachment attachment(context, job, options);
  const auto code = attachment.Run(std::move(stream));
  return code.ok() ? *code : Fail(context, code.status());
}

}  // namespace muster::cli
