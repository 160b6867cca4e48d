#include "cli/top/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

constexpr int kFrameRows = 3;  // the title, the header of the table, the line of keys

// Removes the last UTF-8 character.
void RemoveLast(std::string& text) {
  while (!text.empty()) {
    const auto last = static_cast<unsigned char>(text.back());
    text.pop_back();
    if ((last & 0xc0) != 0x80) return;
  }
}

bool Matches(const job::JobRecord& job, absl::string_view lower_filter) {
  return lower_filter.empty() || absl::StrContains(absl::AsciiStrToLower(job.id), lower_filter) ||
         absl::StrContains(absl::AsciiStrToLower(job.name), lower_filter);
}

}  // namespace

size_t TopModel::page() const {
  return static_cast<size_t>(std::max(1, screen_.rows - kFrameRows));
}

void TopModel::ApplyFilter() {
  shown_.clear();
  active_ = 0;
  const std::string filter = absl::AsciiStrToLower(filter_);
  size_t row = shown_.max_size();
  for (size_t i = 0; jobs_ != nullptr && i < jobs_->size(); ++i) {
    const job::JobRecord& job = (*jobs_)[i];
    const bool active = !job::IsFinal(job.state);
    active_ += active ? 1 : 0;
    if ((only_active_ && !active) || !Matches(job, filter)) continue;
    if (job.id == selected_id_) row = shown_.size();
    shown_.push_back(i);
  }
  if (row != shown_.max_size()) {
    // The rows around the selection do not move on the screen when jobs are added above it.
    const size_t offset = selected_ - std::min(first_, selected_);
    selected_ = row;
    first_ = row - std::min(row, offset);
  }
  selected_ = shown_.empty() ? 0 : std::min(selected_, shown_.size() - 1);
  const size_t last_first = shown_.size() - std::min(shown_.size(), page());
  first_ = std::min(first_, last_first);
  if (selected_ < first_) first_ = selected_;
  if (selected_ >= first_ + page()) first_ = selected_ + 1 - page();
}

void TopModel::SetJobs(JobList jobs) {
  jobs_ = std::move(jobs);
  ApplyFilter();
}

void TopModel::SetOpen(std::optional<OpenJob> open) {
  if (open.has_value() && open->job.id != open_id_) return;  // of a job that was closed meanwhile
  open_ = std::move(open);
  const size_t tasks = open_.has_value() ? open_->tasks.size() : 0;
  first_task_ = std::min(first_task_, tasks == 0 ? 0 : tasks - 1);
}

void TopModel::Resize(ScreenSize size) {
  screen_ = size;
  ApplyFilter();
}

const JobDetail* TopModel::DetailOf(const std::string& id) const {
  const auto found = details_.find(id);
  return found == details_.end() ? nullptr : &found->second;
}

std::vector<std::string> TopModel::VisibleJobs() const {
  std::vector<std::string> ids;
  for (size_t row = first_; row < std::min(first_ + page(), shown_.size()); ++row) {
    ids.push_back(job(row).id);
  }
  return ids;
}

const job::JobRecord* TopModel::Current() const {
  if (!open_id_.empty()) return open_.has_value() ? &open_->job : nullptr;
  return shown_.empty() ? nullptr : &job(selected_);
}

void TopModel::Select(size_t row) {
  if (shown_.empty()) return;
  selected_ = std::min(row, shown_.size() - 1);
  selected_id_ = selected_ == 0 ? "" : job(selected_).id;
  if (selected_ < first_) first_ = selected_;
  if (selected_ >= first_ + page()) first_ = selected_ + 1 - page();
}

void TopModel::Move(int64_t rows) {
  const auto moved = [rows](size_t from) {
    return static_cast<size_t>(std::max<int64_t>(0, static_cast<int64_t>(from) + rows));
  };
  if (open_id_.empty()) {
    Select(moved(selected_));
  } else if (open_.has_value() && !open_->tasks.empty()) {
    first_task_ = std::min(moved(first_task_), open_->tasks.size() - 1);
  }
}

void TopModel::Open() {
  if (!open_id_.empty() || shown_.empty()) return;
  open_id_ = job(selected_).id;
  open_.reset();
  first_task_ = 0;
}

void TopModel::AskToStop() {
  const job::JobRecord* job = Current();
  if (job == nullptr) return;
  if (job::IsFinal(job->state)) {
    message_ = absl::StrCat(job->id, " is not running: it is ", job::ToString(job->state));
    return;
  }
  stopping_ = *job;
  prompt_ = Prompt::kStop;
}

TopAction TopModel::PressInFilter(const KeyPress& key) {
  switch (key.key) {
    case Key::kEnter:
      prompt_ = Prompt::kNone;
      return {};
    case Key::kEscape:
      prompt_ = Prompt::kNone;
      filter_ = filter_before_;
      break;
    case Key::kBackspace:
      RemoveLast(filter_);
      break;
    case Key::kCharacter:
      filter_ += key.text;
      break;
    default:
      return {};
  }
  ApplyFilter();
  return {};
}

TopAction TopModel::PressInQuestion(const KeyPress& key) {
  if (key.text == "y" || key.text == "Y") {
    prompt_ = Prompt::kNone;
    message_ = absl::StrCat("stopping ", stopping_.id);
    return {TopAction::Kind::kStop, stopping_.id};
  }
  if (key.text == "n" || key.text == "N" || key.key == Key::kEscape) {
    prompt_ = Prompt::kNone;
    message_ = "nothing was stopped";
  }
  return {};
}

TopAction TopModel::PressCharacter(char character) {
  switch (character) {
    case 'q':
      return {TopAction::Kind::kQuit, ""};
    case 'j':
      Move(1);
      break;
    case 'k':
      Move(-1);
      break;
    case '?':
      prompt_ = Prompt::kHelp;
      break;
    case 's':
      AskToStop();
      break;
    case 'a':
      only_active_ = !only_active_;
      ApplyFilter();
      break;
    case '/':
      if (!open_id_.empty()) break;
      filter_before_ = filter_;
      prompt_ = Prompt::kFilter;
      break;
    default:
      break;
  }
  return {};
}

TopAction TopModel::Press(const KeyPress& key) {
  message_.clear();
  if (key.key == Key::kRedraw) return {TopAction::Kind::kRedraw, ""};
  if (prompt_ == Prompt::kFilter) return PressInFilter(key);
  if (prompt_ == Prompt::kStop) return PressInQuestion(key);
  if (prompt_ == Prompt::kHelp) {
    prompt_ = Prompt::kNone;  // any key closes it
    return {};
  }
  const auto page_rows = static_cast<int64_t>(page());
  constexpr int64_t kAll = int64_t{1} << 40;
  switch (key.key) {
    case Key::kUp:
      Move(-1);
      break;
    case Key::kDown:
      Move(1);
      break;
    case Key::kPageUp:
      Move(-page_rows);
      break;
    case Key::kPageDown:
      Move(page_rows);
      break;
    case Key::kHome:
      Move(-kAll);
      break;
    case Key::kEnd:
      Move(kAll);
      break;
    case Key::kEnter:
    case Key::kRight:
      Open();
      break;
    case Key::kEscape:
    case Key::kLeft:
      if (!open_id_.empty()) {
        open_id_.clear();
        open_.reset();
      } else if (key.key == Key::kEscape && !filter_.empty()) {
        filter_.clear();
        ApplyFilter();
      }
      break;
    case Key::kCharacter:
      return key.text.size() == 1 ? PressCharacter(key.text[0]) : TopAction{};
    default:
      break;
  }
  return {};
}

}  // namespace muster::cli
