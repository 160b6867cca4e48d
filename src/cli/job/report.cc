#include "cli/job/report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/files.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "checkpoint/format.h"
#include "job/failure.h"

namespace muster::cli {
namespace {

constexpr int kNameWidth = 40;

Style StyleOf(absl::string_view state) {
  if (state == "Succeeded") return Style::kGreen;
  if (state == "Running") return Style::kCyan;
  if (state == "Failed" || state == "Lost") return Style::kRed;
  if (state == "Stopped") return Style::kDim;
  return Style::kYellow;
}

std::string FailureText(const Terminal& terminal, const job::JobRecord& job,
                        const job::FailureReport& report) {
  std::string text;
  if (report.first.has_value()) {
    const job::TaskFailure& first = *report.first;
    std::string when = base::FormatLocalTime(first.time);
    if (job.started.has_value()) {
      absl::StrAppend(&when, ", ", base::FormatElapsed(first.time - *job.started),
                      " after the start");
    }
    absl::StrAppend(&text, "\n  first failure  ",
                    terminal.Paint(Style::kBold, first.task.ToString()), " (attempt ",
                    first.attempt + 1, "), ", when, "\n");
    absl::StrAppend(&text, "  cause          ", terminal.Paint(Style::kRed, first.cause), "\n");
    if (!first.advice.empty()) absl::StrAppend(&text, "  what to do     ", first.advice, "\n");
    if (!first.last_lines.empty()) {
      absl::StrAppend(&text, "  its last lines\n");
      for (const std::string& line : first.last_lines) {
        absl::StrAppend(&text, "    ", terminal.Paint(Style::kDim, "|"), " ", line, "\n");
      }
    }
  }
  if (!report.not_restarted.empty()) {
    absl::StrAppend(&text, "  not restarted  ", report.not_restarted, "\n");
  }
  if (!report.victims.empty()) {
    absl::StrAppend(&text, "  also ended\n");
    for (const std::string& victim : report.victims) absl::StrAppend(&text, "    ", victim, "\n");
  }
  if (report.first.has_value()) {
    absl::StrAppend(&text, "  all its output: muster logs ", job.id, " ",
                    report.first->task.ToString(), "\n");
  }
  return text;
}

// Returns text of an untrusted file, made safe and short for a terminal.
std::string Word(const std::string& text) {
  return base::Ellipsize(base::Printable(text, base::Colours::kNone), kNameWidth);
}

// Returns ", of JOB" if another job produced the result, else "".
std::string OfAnother(const job::JobRecord& job, const std::string& maker) {
  if (maker.empty() || maker == job.id) return "";
  return absl::StrCat(", of ", Word(maker));
}

std::string CheckpointLines(const job::JobRecord& job, const jobs::LatestCheckpoint& latest) {
  const std::string another = OfAnother(job, latest.made_by);
  const bool idle = job.state == job::JobState::kSucceeded && !another.empty();
  return absl::StrCat(idle ? absl::StrCat("  nothing was trained: step ", latest.step,
                                          " had already been reached\n")
                           : "",
                      "  checkpoints: ", base::JoinPath(job.model_dir, checkpoint::kFolder),
                      " (latest step ", latest.step, another, ")\n");
}

std::string EvaluationLine(const job::JobRecord& job, const jobs::LatestEvaluation& latest) {
  const double value = latest.value;
  std::string line = absl::StrCat(
      "  ", latest.name.empty() ? job.name : Word(latest.name), " ", Word(latest.metric), ": ",
      std::abs(value) < 1e9 ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4g", value));
  if (latest.step.has_value()) {
    absl::StrAppend(&line, " (step ", *latest.step, OfAnother(job, latest.made_by), ")");
  }
  return absl::StrCat(line, "\n");
}

}  // namespace

std::string PaintState(const Terminal& terminal, job::JobState state) {
  return terminal.Paint(StyleOf(job::ToString(state)), job::ToString(state));
}

std::string PaintState(const Terminal& terminal, job::TaskState state) {
  return terminal.Paint(StyleOf(job::ToString(state)), job::ToString(state));
}

std::string Verdict(const Terminal& terminal, const job::JobRecord& job) {
  std::string text =
      absl::StrCat(terminal.Paint(Style::kBold, job.id), " ", PaintState(terminal, job.state));
  if (job.started.has_value() && job.finished.has_value()) {
    absl::StrAppend(&text, " after ", base::FormatElapsed(*job.finished - *job.started));
  }
  if (!job.reason.empty()) absl::StrAppend(&text, ": ", job.reason);
  absl::StrAppend(&text, "\n");
  if (job.state == job::JobState::kSucceeded && !job.model_dir.empty()) {
    absl::StrAppend(&text, "  model dir: ", job.model_dir, "\n");
  }
  if (!job.failure.empty()) {
    const auto report = job::FailureFromJson(job.failure);
    if (report.ok()) absl::StrAppend(&text, FailureText(terminal, job, *report));
  }
  return text;
}

std::string TrainingLines(const job::JobRecord& job, const jobs::TrainingResult& result) {
  return absl::StrCat(result.checkpoint ? CheckpointLines(job, *result.checkpoint) : "",
                      result.evaluation ? EvaluationLine(job, *result.evaluation) : "");
}

}  // namespace muster::cli
