// The state of `muster top`: what is shown, what is selected, and how keys change it. Pure: neither
// a terminal nor the history.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/top/keys.h"
#include "job/event_sink.h"
#include "jobs/results/progress.h"

namespace muster::cli {

using JobList = std::shared_ptr<const std::vector<job::JobRecord>>;

// The part of a row that is read only while the row is visible.
struct JobDetail {
  int running = 0;  // tasks
  std::optional<jobs::Progress> progress;
  std::optional<absl::Duration> left;
};
using JobDetails = std::map<std::string, JobDetail>;  // by the job's id

struct OutputLine {
  std::string task;
  std::string text;
};

// The job that the user has opened.
struct OpenJob {
  job::JobRecord job;
  JobDetail detail;
  std::vector<job::TaskRecord> tasks;
  std::vector<OutputLine> lines;  // the last ones, of all tasks
};

struct ScreenSize {
  int columns = 80;
  int rows = 24;
  bool operator==(const ScreenSize&) const = default;
};

// What the caller must do after a key.
struct TopAction {
  enum class Kind { kNone, kQuit, kStop, kRedraw };
  Kind kind = Kind::kNone;
  std::string job;  // to stop
};

// Not thread-safe.
class TopModel {
 public:
  enum class Prompt { kNone, kFilter, kStop, kHelp };

  // New data. The selection stays on its job.
  void SetJobs(JobList jobs);
  void SetDetails(JobDetails details) { details_ = std::move(details); }
  void SetOpen(std::optional<OpenJob> open);
  void SetMessage(std::string message) { message_ = std::move(message); }
  void Resize(ScreenSize size);

  TopAction Press(const KeyPress& key);

  // The jobs that match the filter, newest first.
  size_t size() const { return shown_.size(); }
  const job::JobRecord& job(size_t row) const { return (*jobs_)[shown_[row]]; }
  const JobDetail* DetailOf(const std::string& id) const;
  size_t selected() const { return selected_; }  // meaningless if size() is 0
  size_t first() const { return first_; }        // the first visible row
  size_t page() const;                           // number of visible rows
  // Returns the ids of the visible jobs, whose details are wanted.
  std::vector<std::string> VisibleJobs() const;

  // The opened job; "" = none, the list is shown.
  const std::string& open_id() const { return open_id_; }
  // Returns null until the opened job has been read.
  const OpenJob* open() const { return open_.has_value() ? &*open_ : nullptr; }
  size_t first_task() const { return first_task_; }

  Prompt prompt() const { return prompt_; }
  const std::string& filter() const { return filter_; }
  bool only_active() const { return only_active_; }
  const std::string& message() const { return message_; }
  size_t total() const { return jobs_ == nullptr ? 0 : jobs_->size(); }
  size_t active() const { return active_; }
  bool loaded() const { return jobs_ != nullptr; }
  ScreenSize screen() const { return screen_; }
  // Returns the job that the question of Prompt::kStop is about.
  const job::JobRecord& stopping() const { return stopping_; }

 private:
  TopAction PressInFilter(const KeyPress& key);
  TopAction PressInQuestion(const KeyPress& key);
  TopAction PressCharacter(char character);
  void Move(int64_t rows);
  void Open();
  void AskToStop();
  void Select(size_t row);
  void ApplyFilter();
  const job::JobRecord* Current() const;

  JobList jobs_;  // null until read
  JobDetails details_;
  std::optional<OpenJob> open_;
  std::string open_id_;
  std::vector<size_t> shown_;  // indexes of jobs_
  std::string selected_id_;    // "" = the newest, whichever it is
  size_t selected_ = 0;
  size_t first_ = 0;
  size_t first_task_ = 0;
  size_t active_ = 0;
  Prompt prompt_ = Prompt::kNone;
  std::string filter_;
  std::string filter_before_;  // restored by Escape
  bool only_active_ = false;
  std::string message_;
  job::JobRecord stopping_;
  ScreenSize screen_;
};

}  // namespace muster::cli
