#include "cli/job/attach.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/unique_fd.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/job/progress_line.h"
#include "cli/job/report.h"
#include "cli/job/task_table.h"
#include "jobs/control/refresh.h"
#include "jobs/results/progress.h"
#include "jobs/results/results.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

// Interval at which unterminated lines, such as progress bars, are printed.
constexpr absl::Duration kPartialInterval = absl::Seconds(1);
// Interval of liveness checks, which detect a supervisor that died without notice.
constexpr absl::Duration kLivenessInterval = absl::Seconds(5);
// Polling intervals of the progress files, for a job with and without progress.
constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);
constexpr absl::Duration kNoProgressInterval = absl::Seconds(1);
// Grace period before unreadable progress is removed from the terminal: a task may be writing the
// file.
constexpr absl::Duration kProgressMemory = absl::Seconds(2);

// The event loop of Attach(). Waits on the log stream, SIGINT and the job's watch at once:
//
//   ReadChanges -> ShowOutput -> Wait -> HandleInterrupt -> (liveness check) -> ReadChanges …
//
// The loop ends once the watch is closed (watch_ is null) and the logs have been read after that.
class Attachment {
 public:
  Attachment(Context& context, job::JobRecord job, const AttachOptions& options)
      : context_(context),
        job_(std::move(job)),
        options_(options),
        view_(context.out(), options.view),
        last_event_(options.after_event) {}
  ~Attachment() { context_.err().SetStatus(""); }

  absl::StatusOr<int> Run(std::unique_ptr<supervise::LogStream> stream);

 private:
  absl::Status Start(std::unique_ptr<supervise::LogStream> stream);
  void ObservePlatform();
  absl::Status ReadChanges();
  absl::StatusOr<std::vector<job::Event>> NewEvents();
  void ShowStarting(const std::vector<job::TaskRecord>& tasks);
  bool IsInTable(const job::Event& event, const std::vector<job::TaskRecord>& tasks) const;
  void Note(const std::string& text);
  void ShowOutput();
  void ShowProgress();
  void Wait();
  absl::Status HandleInterrupt();
  int Finish();

  Context& context_;
  job::JobRecord job_;
  const AttachOptions options_;
  LogView view_;
  history::History* history_ = nullptr;
  platform::Platform* platform_ = nullptr;
  std::unique_ptr<supervise::LogStream> stream_;
  std::unique_ptr<platform::JobWatch> watch_;
  base::UniqueFd signals_;
  const process::HeldSignals held_{SIGINT};
  int64_t last_event_;
  int interrupts_ = 0;
  bool must_observe_ = true;    // the platform may have changes: Observe() is due
  bool answers_ = true;         // the last Observe() succeeded
  bool table_is_live_ = false;  // can be redrawn: nothing was printed below it
  int table_lines_ = 0;         // height of the drawn table
  absl::Time partial_at_ = absl::InfiniteFuture();
  absl::Time liveness_at_;
  std::vector<job::TaskRecord> tasks_;
  std::optional<jobs::Progress> progress_;  // as displayed
  jobs::ProgressMeter meter_;
  absl::Time progress_at_ = absl::InfiniteFuture();
  absl::Time progress_read_;
};

absl::Status Attachment::Start(std::unique_ptr<supervise::LogStream> stream) {
  signals_ = base::UniqueFd(::signalfd(-1, &held_.set(), SFD_CLOEXEC | SFD_NONBLOCK));
  MUSTER_ASSIGN_OR_RETURN(history_, context_.jobs().history());
  MUSTER_ASSIGN_OR_RETURN(platform_, context_.jobs().platform(job_.platform));
  stream_ = std::move(stream);
  if (stream_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(stream_, platform_->Logs(job_, options_.tasks));
  }
  // Watch() fails for a job that has ended. Its record is complete then, so the loop runs once.
  if (auto watch = platform_->Watch(job_); watch.ok()) watch_ = *std::move(watch);
  // Only a terminal gets partial lines: in a file or a pipe they would split the line permanently.
  if (context_.out().is_terminal()) partial_at_ = absl::Now() + kPartialInterval;
  liveness_at_ = absl::Now() + kLivenessInterval;
  if (context_.err().can_redraw() && !options_.view.json) progress_at_ = absl::Now();
  table_is_live_ = options_.show_events && context_.err().can_redraw();
  return absl::OkStatus();
}

// Draws the task table, replacing the previous one, as long as nothing was printed below it.
void Attachment::ShowStarting(const std::vector<job::TaskRecord>& tasks) {
  if (!table_is_live_) return;
  Terminal& err = context_.err();
  const std::string table = TaskTable(err, job_.id, tasks, absl::Now());
  const int lines = static_cast<int>(tasks.size()) + 1;  // no row wraps: Render() truncates
  // Lines that scrolled off the screen cannot be redrawn. The cursor takes one line.
  table_is_live_ = lines < err.height();
  if (!table_is_live_) return;
  err.EraseLines(table_lines_);
  err.Print(table);
  err.Flush();
  table_lines_ = lines;
}

// Returns whether the live table already shows the event. A failure is always printed as a line of
// its own, because the table is overwritten.
bool Attachment::IsInTable(const job::Event& event,
                           const std::vector<job::TaskRecord>& tasks) const {
  if (!table_is_live_ || event.kind != "task") return false;
  const auto task = std::find_if(
      tasks.begin(), tasks.end(),
      [&event](const job::TaskRecord& record) { return record.id.ToString() == event.subject; });
  return task != tasks.end() &&
         (task->state == job::TaskState::kStarting || task->state == job::TaskState::kRunning);
}

void Attachment::Note(const std::string& text) {
  table_is_live_ = false;
  context_.err().Note(text);
}

// Returns the events since the last call, and reloads job_. Omits the last job event of a finished
// job, its verdict, which Finish() prints.
absl::StatusOr<std::vector<job::Event>> Attachment::NewEvents() {
  MUSTER_ASSIGN_OR_RETURN(auto events, history_->Events(job_.id, last_event_));
  MUSTER_ASSIGN_OR_RETURN(job_, history_->GetJob(job_.id));
  if (job::IsFinal(job_.state)) {
    // The job may have ended between the two reads. A finished job gets no more events.
    MUSTER_ASSIGN_OR_RETURN(events, history_->Events(job_.id, last_event_));
  }
  if (!events.empty()) last_event_ = events.back().sequence;
  if (job::IsFinal(job_.state)) {
    const auto verdict = std::find_if(events.rbegin(), events.rend(),
                                      [](const job::Event& event) { return event.kind == "job"; });
    if (verdict != events.rend()) events.erase(std::next(verdict).base());
  }
  return events;
}

// Applies changes that only the platform has to the history. Does not fail if the platform does not
// respond: prints a notice when that begins and when it ends.
void Attachment::ObservePlatform() {
  if (!must_observe_) return;
  must_observe_ = false;
  const absl::Status observed = jobs::Observe(context_.jobs(), job_);
  if (observed.ok() == answers_) return;
  answers_ = observed.ok();
  Note(answers_ ? "the platform responds again"
                : absl::StrCat("lost contact with the platform: ", observed.message()));
}

absl::Status Attachment::ReadChanges() {
  ObservePlatform();
  MUSTER_ASSIGN_OR_RETURN(const auto events, NewEvents());
  MUSTER_ASSIGN_OR_RETURN(tasks_, history_->Tasks(job_.id));
  // An update may add tasks to a running job.
  for (const job::TaskRecord& task : tasks_) {
    if (!options_.tasks.empty()) break;
    view_.Expect(task.id);
    stream_->AddTask(task.id);
  }
  for (const cluster::TaskId& task : options_.tasks) view_.Expect(task);
  if (!options_.show_events) return absl::OkStatus();
  if (table_lines_ == 0 || !events.empty()) ShowStarting(tasks_);
  std::vector<const job::Event*> unshown;
  for (const job::Event& event : events) {
    if (!IsInTable(event, tasks_)) unshown.push_back(&event);
  }
  for (const job::Event* event : unshown) {
    Note(event->subject.empty() ? event->message
                                : absl::StrCat(event->subject, " ", event->message));
  }
  context_.err().Flush();
  return absl::OkStatus();
}

void Attachment::Wait() {
  pollfd waiting[3] = {{.fd = stream_->fd(), .events = POLLIN},
                       {.fd = signals_.get(), .events = POLLIN},
                       {.fd = watch_ == nullptr ? -1 : watch_->fd(), .events = POLLIN}};
  const absl::Time until = std::min(partial_at_, liveness_at_);
  int ready = 0;
  // Redraws the progress line without returning to the loop, which would read the history.
  do {
    ShowProgress();
    const absl::Duration timeout = std::min(until, progress_at_) - absl::Now();
    const int64_t ms = std::clamp<int64_t>(absl::ToInt64Milliseconds(timeout) + 1, 0, 10'000);
    ready = ::poll(waiting, 3, static_cast<int>(ms));
  } while (ready == 0 && absl::Now() < until);
  if (watch_ == nullptr || waiting[2].revents == 0) return;
  must_observe_ = true;
  if (!watch_->Drain()) watch_.reset();
}

absl::Status Attachment::HandleInterrupt() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    ++interrupts_;
    if (!options_.owns_job) continue;
    Note(interrupts_ == 1 ? "stopping the job; press Ctrl-C again to kill it" : "killing the job");
    context_.err().Flush();
    const absl::Status status = platform_->Stop(job_, /*immediately=*/interrupts_ > 1);
    // After the watch is closed, the job has ended and Stop() may fail.
    if (!status.ok() && watch_ != nullptr) return status;
  }
  return absl::OkStatus();
}

void Attachment::ShowProgress() {
  const absl::Time now = absl::Now();
  if (progress_at_ == absl::InfiniteFuture()) return;
  if (progress_at_ <= now) {
    if (auto progress = jobs::ReadJobProgress(job_, tasks_)) {
      progress_ = progress;
      progress_read_ = now;
      meter_.Update(*progress, now);
    } else if (now - progress_read_ > kProgressMemory) {
      progress_.reset();
    }
    progress_at_ = now + (progress_.has_value() ? kProgressInterval : kNoProgressInterval);
  }
  Terminal& err = context_.err();
  err.SetStatus(progress_.has_value() ? ProgressLine(err, *progress_, meter_.Left(now)) : "");
}

void Attachment::ShowOutput() {
  Terminal& out = context_.out();
  stream_->Acknowledge();
  bool any = false;
  while (out.ok()) {
    const auto line = stream_->Next();
    if (!line.has_value()) break;
    view_.Print(*line);
    any = true;
  }
  if (partial_at_ <= absl::Now()) {
    partial_at_ = absl::Now() + kPartialInterval;
    any |= view_.PrintPartials(*stream_);
  }
  out.Flush();
  if (any && out.is_terminal()) table_is_live_ = false;
}

absl::StatusOr<int> Attachment::Run(std::unique_ptr<supervise::LogStream> stream) {
  MUSTER_RETURN_IF_ERROR(Start(std::move(stream)));
  for (;;) {
    // Sampled before the logs are read: once the job has ended, this read is complete.
    const bool ended = watch_ == nullptr;
    MUSTER_RETURN_IF_ERROR(ReadChanges());
    ShowOutput();
    // An owned job is followed to its end even if the output is closed: the exit code is its
    // verdict.
    if (!context_.out().ok() && !options_.owns_job) return kSuccess;
    if (ended) return Finish();
    Wait();
    MUSTER_RETURN_IF_ERROR(HandleInterrupt());
    if (interrupts_ > 0 && !options_.owns_job) return kInterrupted;
    if (liveness_at_ <= absl::Now()) {
      liveness_at_ = absl::Now() + kLivenessInterval;
      must_observe_ = true;
      if (jobs::IsGone(context_.jobs(), job_)) watch_.reset();
    }
  }
}

int Attachment::Finish() {
  context_.err().SetStatus("");
  if (context_.out().ok()) view_.PrintPartials(*stream_);
  const absl::Status refreshed = jobs::Refresh(context_.jobs(), job_);
  Terminal& err = context_.err();
  if (!job::IsFinal(job_.state)) {
    const std::string why = absl::StrCat(refreshed.message(), job_.reason);
    err.Error(absl::StrCat("lost contact with ", job_.id, "; its outcome is unknown",
                           why.empty() ? "" : ": ", why, ". Files: ", job_.directory));
    return kFailure;
  }
  PrintVerdict(context_, job_);
  return interrupts_ > 0 ? kInterrupted : ExitCodeOf(job_);
}

}  // namespace

absl::Status QuietNeedsDetach() {
  return absl::InvalidArgumentError("--quiet prints the id of a job in the background: add -d");
}

void PrintVerdict(Context& context, const job::JobRecord& job) {
  Terminal& err = context.err();
  err.Print(absl::StrCat(Verdict(err, job), TrainingLines(job, jobs::ReadTrainingResult(job))));
  err.Flush();
}

int ExitCodeOf(const job::JobRecord& job) {
  return job.state == job::JobState::kSucceeded ? kSuccess : kFailure;
}

int Attach(Context& context, const job::JobRecord& job, const AttachOptions& options,
           std::unique_ptr<supervise::LogStream> stream) {
  Attachment attachment(context, job, options);
  const auto code = attachment.Run(std::move(stream));
  return code.ok() ? *code : Fail(context, code.status());
}

}  // namespace muster::cli
