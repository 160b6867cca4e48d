#include "cli/attach.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "cli/commands.h"
#include "cli/job_lookup.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/training.h"

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
//   ReadNews -> ShowOutput -> Wait -> HandleInterrupt -> (liveness check) -> ReadNews …
//
// The loop ends once the watch is closed (watch_ is null) and the logs have been read after that.
class Attachment {
 public:
  Attachment(Context& context, JobRecord job, const AttachOptions& options)
      : context_(context),
        job_(std::move(job)),
        options_(options),
        view_(context.out(), options.view) {}
  ~Attachment() {
    context_.err().SetStatus("");
    ::sigprocmask(SIG_SETMASK, &previous_mask_, nullptr);
  }

  absl::StatusOr<int> Run(std::unique_ptr<LogStream> stream);

 private:
  absl::Status Start(std::unique_ptr<LogStream> stream);
  void Look();
  absl::Status ReadNews();
  absl::StatusOr<std::vector<Event>> NewEvents();
  void ShowStarting(const std::vector<TaskRecord>& tasks);
  bool IsInTable(const Event& event, const std::vector<TaskRecord>& tasks) const;
  void Note(const std::string& text);
  void ShowOutput();
  void ShowProgress();
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
  bool look_ = true;            // the platform may have changes: Observe() is due
  bool answers_ = true;         // the last Observe() succeeded
  bool table_is_live_ = false;  // can be redrawn: nothing was printed below it
  int table_lines_ = 0;         // height of the drawn table
  absl::Time partial_at_ = absl::InfiniteFuture();
  absl::Time liveness_at_;
  std::vector<TaskRecord> tasks_;
  std::optional<Progress> progress_;  // as displayed
  ProgressMeter meter_;
  absl::Time progress_at_ = absl::InfiniteFuture();
  absl::Time progress_read_;
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
void Attachment::ShowStarting(const std::vector<TaskRecord>& tasks) {
  if (!table_is_live_) return;
  Terminal& err = context_.err();
  const std::string table = TaskTable(err, tasks, absl::Now());
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
bool Attachment::IsInTable(const Event& event, const std::vector<TaskRecord>& tasks) const {
  if (!table_is_live_ || event.kind != "task") return false;
  const auto task = std::find_if(tasks.begin(), tasks.end(), [&event](const TaskRecord& record) {
    return record.id.ToString() == event.subject;
  });
  return task != tasks.end() &&
         (task->state == TaskState::kStarting || task->state == TaskState::kRunning);
}

void Attachment::Note(const std::string& text) {
  table_is_live_ = false;
  context_.err().Note(text);
}

// Returns the events since the last call, and reloads job_. Omits the last job event of a finished
// job, its verdict, which Finish() prints.
absl::StatusOr<std::vector<Event>> Attachment::NewEvents() {
  MUSTER_ASSIGN_OR_RETURN(auto events, history_->Events(job_.id, last_event_));
  MUSTER_ASSIGN_OR_RETURN(job_, history_->GetJob(job_.id));
  if (IsFinal(job_.state)) {
    // The job may have ended between the two reads. A finished job gets no more events.
    MUSTER_ASSIGN_OR_RETURN(events, history_->Events(job_.id, last_event_));
  }
  if (!events.empty()) last_event_ = events.back().sequence;
  if (IsFinal(job_.state)) {
    const auto verdict = std::find_if(events.rbegin(), events.rend(),
                                      [](const Event& event) { return event.kind == "job"; });
    if (verdict != events.rend()) events.erase(std::next(verdict).base());
  }
  return events;
}

// Applies changes that only the platform has to the history. Does not fail if the platform does not
// respond: prints a notice when that begins and when it ends.
void Attachment::Look() {
  if (!look_) return;
  look_ = false;
  const absl::Status observed = Observe(context_, job_);
  if (observed.ok() == answers_) return;
  answers_ = observed.ok();
  Note(answers_ ? "the platform answers again"
                : absl::StrCat("nothing is known of the job at the moment: ", observed.message()));
}

absl::Status Attachment::ReadNews() {
  Look();
  MUSTER_ASSIGN_OR_RETURN(const auto events, NewEvents());
  MUSTER_ASSIGN_OR_RETURN(tasks_, history_->Tasks(job_.id));
  // An update may add tasks to a running job.
  for (const TaskRecord& task : tasks_) {
    if (!options_.tasks.empty()) break;
    view_.Expect(task.id);
    stream_->AddTask(task.id);
  }
  for (const TaskId& task : options_.tasks) view_.Expect(task);
  if (!options_.show_events) return absl::OkStatus();
  if (table_lines_ == 0 || !events.empty()) ShowStarting(tasks_);
  std::vector<const Event*> untold;
  for (const Event& event : events) {
    if (!IsInTable(event, tasks_)) untold.push_back(&event);
  }
  for (const Event* event : untold) {
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
  look_ = true;
  if (!watch_->Drain()) watch_.reset();
}

absl::Status Attachment::HandleInterrupt() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    ++interrupts_;
    if (!options_.owns_job) continue;
    Note(interrupts_ == 1 ? "stopping the job; Ctrl-C again ends it at once"
                          : "ending the job at once");
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
    if (auto progress = ReadJobProgress(job_, tasks_)) {
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

absl::StatusOr<int> Attachment::Run(std::unique_ptr<LogStream> stream) {
  MUSTER_RETURN_IF_ERROR(Start(std::move(stream)));
  for (;;) {
    // Sampled before the logs are read: once the job has ended, this read is complete.
    const bool ended = watch_ == nullptr;
    MUSTER_RETURN_IF_ERROR(ReadNews());
    ShowOutput();
    // An owned job is followed to its end even if nobody reads the output: the exit code is its
    // verdict.
    if (!context_.out().ok() && !options_.owns_job) return kSuccess;
    if (ended) return Finish();
    Wait();
    MUSTER_RETURN_IF_ERROR(HandleInterrupt());
    if (interrupts_ > 0 && !options_.owns_job) return kInterrupted;
    if (liveness_at_ <= absl::Now()) {
      liveness_at_ = absl::Now() + kLivenessInterval;
      look_ = true;
      if (platform_->Check(job_) == Liveness::kGone) watch_.reset();
    }
  }
}

int Attachment::Finish() {
  context_.err().SetStatus("");
  if (context_.out().ok()) view_.PrintPartials(*stream_);
  const absl::Status refreshed = Refresh(context_, job_);
  Terminal& err = context_.err();
  if (!IsFinal(job_.state)) {
    const std::string why = absl::StrCat(refreshed.message(), job_.reason);
    err.Error(absl::StrCat("lost contact with ", job_.id, "; its outcome is unknown",
                           why.empty() ? "" : ": ", why, ". Files: ", job_.directory));
    return kFailure;
  }
  if (options_.show_events) err.Print(absl::StrCat(Verdict(err, job_), TrainingResult(job_)));
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

bool HeldInterrupts::Any() {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, SIGINT) == 1;
}

HeldInterrupts::~HeldInterrupts() { ::sigprocmask(SIG_SETMASK, &previous_, nullptr); }

int Attach(Context& context, const JobRecord& job, const AttachOptions& options,
           std::unique_ptr<LogStream> stream) {
  Attachment attachment(context, job, options);
  const auto code = attachment.Run(std::move(stream));
  return code.ok() ? *code : Fail(context, code.status());
}

}  // namespace muster::cli
