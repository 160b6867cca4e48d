#include "cli/top/screen.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/job/report.h"

namespace muster::cli {
namespace {

constexpr int kGap = 2;
constexpr int kMarker = 2;         // "> " before the selected row
constexpr int kNarrowestJob = 14;  // minimum of the column of the job's id
constexpr int kWidestJob = 48;
constexpr int kStepWidth = 13;

// Returns foreign text in one line without control sequences.
std::string Inert(absl::string_view text) {
  return base::Printable(absl::StrReplaceAll(text, {{"\t", " "}}), base::Colours::kNone);
}

// Returns at most `width` cells of Inert().
std::string Plain(absl::string_view text, int width) {
  return base::Ellipsize(Inert(text), std::max(0, width));
}

// Returns `text`, which may have colours, padded to `width` cells.
std::string Padded(std::string text, int width) {
  const int missing = width - base::DisplayWidth(text);
  return missing > 0 ? text + std::string(static_cast<size_t>(missing), ' ') : text;
}

std::string StepText(const jobs::Progress& progress) {
  if (!progress.steps.has_value()) return absl::StrCat(progress.step);
  std::string text = absl::StrCat(progress.step, "/", *progress.steps);
  if (text.size() <= kStepWidth) return text;
  const double share = static_cast<double>(progress.step) / static_cast<double>(*progress.steps);
  return absl::StrCat(static_cast<int>(100 * std::min(1.0, share)), "%");
}

// A row of the list, for the functions that return its cells.
struct Row {
  const job::JobRecord& job;
  const JobDetail& detail;
  absl::Time now;
};

std::string Step(const Row& row) {
  return row.detail.progress.has_value() ? StepText(*row.detail.progress) : "";
}

std::string Loss(const Row& row) {
  const auto& progress = row.detail.progress;
  if (!progress.has_value() || !progress->loss.has_value()) return "";
  const std::string text = jobs::DescribeLoss(*progress->loss);
  return std::string(absl::StripPrefix(text, "loss "));
}

std::string Rate(const Row& row) {
  const auto& progress = row.detail.progress;
  const bool shown = progress.has_value() && progress->examples_per_second.has_value() &&
                     !job::IsFinal(row.job.state);
  if (!shown) return "";
  return absl::StrReplaceAll(jobs::DescribeRate(*progress->examples_per_second),
                             {{" examples", ""}});
}

std::string Left(const Row& row) {
  return row.detail.left.has_value() ? base::FormatElapsed(*row.detail.left) : "";
}

std::string Tasks(const Row& row) {
  if (job::IsFinal(row.job.state)) return absl::StrCat(row.job.tasks);
  return absl::StrCat(row.detail.running, "/", row.job.tasks);
}

std::string Age(const Row& row) { return base::FormatElapsed(row.now - row.job.created); }

// A column of the list beside the state and the job. A column needs a line here, and its values in
// JobDetail.
struct Column {
  const char* title;
  int width;
  int rank;  // the columns of the highest ranks are omitted on a narrow terminal
  std::string (*cell)(const Row& row);
};
constexpr Column kColumns[] = {
    {"NAME", 18, 7, [](const Row& row) { return row.job.name; }},
    {"PLATFORM", 10, 6, [](const Row& row) { return row.job.platform; }},
    {"STEP", kStepWidth, 1, Step},
    {"LOSS", 8, 2, Loss},
    {"RATE", 9, 5, Rate},
    {"ETA", 7, 4, Left},
    {"TASKS", 6, 3, Tasks},
    {"AGE", 7, 0, Age},
};
constexpr int kStateWidth = 11;

// The columns that fit, and the width of the column of the job.
struct Layout {
  std::vector<const Column*> columns;
  int job = 0;
};

Layout LayoutOf(int width) {
  for (int rank = static_cast<int>(std::size(kColumns)); rank >= 0; --rank) {
    Layout layout{.job = width - kMarker - kStateWidth - kGap};
    for (const Column& column : kColumns) {
      if (column.rank >= rank) continue;
      layout.columns.push_back(&column);
      layout.job -= column.width + kGap;
    }
    if (layout.job < kNarrowestJob && rank > 0) continue;
    layout.job = std::clamp(layout.job, 1, kWidestJob);
    return layout;
  }
  return {};
}

std::string Header(const Layout& layout) {
  std::string line(kMarker, ' ');
  absl::StrAppend(&line, Padded("STATE", kStateWidth + kGap), Padded("JOB", layout.job));
  for (const Column* column : layout.columns) {
    absl::StrAppend(&line, std::string(kGap, ' '), Padded(column->title, column->width));
  }
  return line;
}

std::string RowLine(const Layout& layout, const Row& row, const std::string& state, bool selected) {
  std::string line = selected ? "> " : "  ";
  absl::StrAppend(&line, Padded(state, kStateWidth + kGap));
  absl::StrAppend(&line, Padded(base::EllipsizeMiddle(Inert(row.job.id), layout.job), layout.job));
  for (const Column* column : layout.columns) {
    absl::StrAppend(&line, std::string(kGap, ' '),
                    Padded(Plain(column->cell(row), column->width), column->width));
  }
  return line;
}

std::string Title(const TopModel& model, const Terminal& terminal) {
  std::string line = absl::StrCat(terminal.Paint(Style::kBold, "muster top"), "  ");
  if (!model.loaded()) return absl::StrCat(line, "reading the history");
  absl::StrAppend(&line, base::Plural(static_cast<int64_t>(model.total()), "job"), ", ",
                  model.active(), " active");
  if (model.only_active()) absl::StrAppend(&line, "  only active");
  if (!model.filter().empty()) {
    absl::StrAppend(&line, "  filter: ", Plain(model.filter(), model.screen().columns), "  ",
                    model.size(), " shown");
  }
  return line;
}

std::string Footer(const TopModel& model, const Terminal& terminal) {
  switch (model.prompt()) {
    case TopModel::Prompt::kFilter:
      return absl::StrCat("filter: ", Plain(model.filter(), model.screen().columns), "_");
    case TopModel::Prompt::kStop:
      return terminal.Paint(Style::kYellow,
                            absl::StrCat("Stop ", Plain(model.stopping().id, 60), " (",
                                         job::ToString(model.stopping().state), ", ",
                                         base::Plural(model.stopping().tasks, "task"), ")? y/n"));
    case TopModel::Prompt::kHelp:
      return terminal.Paint(Style::kDim, "any key returns");
    case TopModel::Prompt::kNone:
      break;
  }
  if (!model.message().empty()) return Plain(model.message(), model.screen().columns);
  return terminal.Paint(Style::kDim, model.open_id().empty()
                                         ? "enter open  / filter  a active  s stop  ? help  q quit"
                                         : "esc back  s stop  ? help  q quit");
}

void DrawHelp(std::vector<std::string>& lines) {
  for (const char* line :
       {"", "  up, down, k, j     select the job above or below; in a job, scroll its tasks",
        "  PgUp, PgDn         a page", "  Home, End          the newest, the oldest job",
        "  enter, right       open the job: its tasks and output",
        "  esc, left          back to the list",
        "  /                  filter by name or id: enter keeps, esc discards",
        "  a                  all jobs, or only active ones",
        "  s                  stop the job, after a question",
        "  Ctrl-L             draw the screen anew", "  q, Ctrl-C          quit"}) {
    lines.emplace_back(line);
  }
}

void DrawJobs(const TopModel& model, const Terminal& terminal, absl::Time now, Frame& frame) {
  static const JobDetail kUnknown;
  const Layout layout = LayoutOf(model.screen().columns);
  frame.lines.push_back(terminal.Paint(Style::kBold, Header(layout)));
  const size_t end = std::min(model.first() + model.page(), model.size());
  for (size_t i = model.first(); i < end; ++i) {
    const job::JobRecord& job = model.job(i);
    const JobDetail* detail = model.DetailOf(job.id);
    const bool selected = i == model.selected();
    // The highlighted line has no colours of its own.
    const std::string state =
        selected ? std::string(job::ToString(job.state)) : PaintState(terminal, job.state);
    if (selected) frame.highlighted = static_cast<int>(frame.lines.size());
    frame.lines.push_back(
        RowLine(layout, {job, detail == nullptr ? kUnknown : *detail, now}, state, selected));
  }
  if (!model.loaded() || model.size() > 0) return;
  frame.lines.emplace_back(model.total() == 0
                               ? "  There are no jobs yet; `muster run job.yaml` starts one."
                               : "  No job matches.");
}

std::string TaskLine(const Terminal& terminal, const job::TaskRecord& task, int columns) {
  std::string line = absl::StrCat("  ", Padded(Plain(task.id.ToString(), 16), 16 + kGap),
                                  Padded(PaintState(terminal, task.state), kStateWidth + kGap),
                                  Padded(absl::StrCat(task.attempt + 1), 7 + kGap),
                                  Padded(absl::StrCat(task.restarts), 8 + kGap),
                                  Padded(Plain(task.host, 20), 20 + kGap));
  const int room = columns - base::DisplayWidth(line);
  return absl::StrCat(line, Plain(task.reason, room));
}

void DrawOpenJob(const TopModel& model, const Terminal& terminal, absl::Time now, Frame& frame) {
  std::vector<std::string>& lines = frame.lines;
  const int columns = model.screen().columns;
  const OpenJob* open = model.open();
  if (open == nullptr) {
    lines.emplace_back(absl::StrCat("  reading ", Plain(model.open_id(), columns)));
    return;
  }
  lines.back() =
      absl::StrCat(terminal.Paint(Style::kBold, Plain(open->job.id, columns)), "  ",
                   PaintState(terminal, open->job.state), "  ", Plain(open->job.platform, 20), ", ",
                   base::FormatElapsed(now - open->job.created),
                   open->job.reason.empty() ? "" : ": ", Plain(open->job.reason, columns));
  std::string progress =
      open->detail.progress.has_value() ? jobs::DescribeProgress(*open->detail.progress) : "";
  if (open->detail.left.has_value()) {
    absl::StrAppend(&progress, ", ", base::FormatElapsed(*open->detail.left), " left");
  }
  lines.push_back(progress);
  lines.push_back(terminal.Paint(
      Style::kBold,
      absl::StrCat("  ", Padded("TASK", 18), Padded("STATE", 13), Padded("ATTEMPT", 9),
                   Padded("RESTARTS", 10), Padded("HOST", 22), "NOTE")));
  // The title, the progress, two headers and the line of keys take five rows.
  const int room = std::max(2, model.screen().rows - 5);
  const size_t half = static_cast<size_t>(std::max(1, room / 2));
  const size_t end = std::min(open->tasks.size(), model.first_task() + half);
  for (size_t i = model.first_task(); i < end; ++i) {
    lines.push_back(TaskLine(terminal, open->tasks[i], columns));
  }
  const size_t hidden = open->tasks.size() - (end - model.first_task());
  lines.push_back(terminal.Paint(
      Style::kBold,
      hidden == 0 ? "OUTPUT" : absl::StrCat("OUTPUT  (", hidden, " more tasks: up, down)")));
  const size_t left = static_cast<size_t>(
      std::max<int64_t>(0, model.screen().rows - 1 - static_cast<int64_t>(lines.size())));
  const size_t from = open->lines.size() - std::min(open->lines.size(), left);
  for (size_t i = from; i < open->lines.size(); ++i) {
    const OutputLine& line = open->lines[i];
    lines.push_back(absl::StrCat(terminal.Paint(Style::kDim, absl::StrCat(line.task, " |")), " ",
                                 Plain(line.text, columns)));
  }
}

}  // namespace

Frame DrawTop(const TopModel& model, const Terminal& terminal, absl::Time now) {
  Frame frame;
  frame.lines.push_back(Title(model, terminal));
  if (model.prompt() == TopModel::Prompt::kHelp) {
    DrawHelp(frame.lines);
  } else if (model.open_id().empty()) {
    DrawJobs(model, terminal, now, frame);
  } else {
    DrawOpenJob(model, terminal, now, frame);
  }
  const auto rows = static_cast<size_t>(std::max(1, model.screen().rows));
  frame.lines.resize(rows);
  frame.lines.back() = Footer(model, terminal);
  if (frame.highlighted >= static_cast<int>(rows) - 1) frame.highlighted = -1;
  for (std::string& line : frame.lines) {
    if (base::DisplayWidth(line) <= model.screen().columns) continue;
    // Truncation may remove the sequence that resets a colour.
    line = absl::StrCat(base::Ellipsize(line, model.screen().columns),
                        line.find('\x1b') == std::string::npos ? "" : "\x1b[0m");
  }
  return frame;
}

}  // namespace muster::cli
