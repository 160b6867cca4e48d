#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/units.h"
#include "cli/untrusted_file.h"
#include "job/job_spec.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

constexpr double kMany = 1e15;
// Time constant of the exponentially weighted rate.
constexpr absl::Duration kMemory = absl::Seconds(10);
// Minimum observation time before an estimate is made.
constexpr absl::Duration kShortest = absl::Seconds(1);
constexpr absl::Duration kLongestLeft = absl::Hours(24 * 999);
constexpr int kBarCells = 20;

std::optional<double> NumberIn(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  if (!(std::abs(number) <= kMany)) return std::nullopt;
  return number;
}

std::optional<int64_t> CountIn(const nlohmann::json& json, const char* key) {
  const std::optional<double> number = NumberIn(json, key);
  if (!number.has_value() || *number < 0) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::string WithThousands(int64_t number) {
  std::string digits = absl::StrCat(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string LossText(double loss) {
  if (std::isnan(loss)) return "loss nan";
  const double size = std::abs(loss);
  const bool plain = size == 0 || (size >= 0.001 && size < 100'000);
  return plain ? absl::StrFormat("loss %.4f", loss) : absl::StrFormat("loss %.3g", loss);
}

std::string RateText(double rate) {
  return absl::StrCat(rate < 10 ? absl::StrFormat("%.1f", rate) : WithThousands(std::llround(rate)),
                      " examples/s");
}

std::string LeftText(absl::Duration left) {
  if (left >= absl::Hours(24)) return absl::StrCat(FormatElapsed(left), " left");
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1)));
  if (seconds < 3600) return absl::StrFormat("%d:%02d left", seconds / 60, seconds % 60);
  return absl::StrFormat("%d:%02d:%02d left", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

double FractionOf(const Progress& progress) {
  return std::min(1.0, static_cast<double>(progress.step) / static_cast<double>(*progress.steps));
}

std::string Bar(const Terminal& terminal, double fraction, int cells) {
  if (!terminal.unicode()) {
    const auto full = static_cast<size_t>(fraction * cells);
    return absl::StrCat("[", std::string(full, '#'),
                        std::string(static_cast<size_t>(cells) - full, ' '), "]");
  }
  static constexpr absl::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(fraction * cells * 8);
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  absl::StrAppend(&bar, kEighths[eighths % 8]);
  const int blank = cells - DisplayWidth(bar);
  return terminal.Paint(Style::kCyan, bar) + std::string(static_cast<size_t>(blank), ' ');
}

// The parts of the line, for decreasing widths of the terminal.
struct Layout {
  int bar = 0;  // cells
  bool rate = false;
  bool loss = false;
  bool left = false;
};
constexpr Layout kLayouts[] = {
    {kBarCells, true, true, true}, {kBarCells / 2, true, true, true}, {0, true, true, true},
    {0, false, true, true},        {0, false, false, true},           {},
};

std::string Compose(const Terminal& terminal, const Progress& progress,
                    std::optional<absl::Duration> left, const Layout& layout) {
  std::string line;
  std::vector<std::string> fields;
  if (progress.steps.has_value()) {
    const double fraction = FractionOf(progress);
    absl::StrAppendFormat(&line, "%4d%%", static_cast<int>(fraction * 100));
    if (layout.bar > 0) absl::StrAppend(&line, " ", Bar(terminal, fraction, layout.bar));
    fields.push_back(absl::StrCat("step ", progress.step, "/", *progress.steps));
  } else {
    fields.push_back(absl::StrCat("step ", progress.step));
  }
  if (layout.loss && progress.loss.has_value()) fields.push_back(LossText(*progress.loss));
  if (layout.rate && progress.examples_per_second.has_value()) {
    fields.push_back(RateText(*progress.examples_per_second));
  }
  if (layout.left && left.has_value()) fields.push_back(LeftText(*left));
  return absl::StrCat(line, "  ", absl::StrJoin(fields, "  "));
}

}  // namespace

std::optional<Progress> ParseProgress(absl::string_view text) {
  // JSON has no such literals, but many writers, such as Python's json, emit them.
  const std::string valid =
      absl::StrReplaceAll(text, {{"NaN", "null"}, {"-Infinity", "null"}, {"Infinity", "null"}});
  const auto json = ParseJson(valid);
  if (!json.is_object()) return std::nullopt;
  const std::optional<int64_t> step = CountIn(json, "step");
  if (!step.has_value()) return std::nullopt;
  Progress progress{.step = *step, .steps = CountIn(json, "steps"), .loss = NumberIn(json, "loss")};
  if (progress.steps == 0) progress.steps.reset();
  if (json.contains("loss") && json["loss"].is_null()) {
    progress.loss = std::numeric_limits<double>::quiet_NaN();
  }
  progress.examples_per_second = NumberIn(json, "examples_per_second");
  if (progress.examples_per_second < 0) progress.examples_per_second.reset();
  return progress;
}

std::optional<Progress> ReadProgressFile(const std::string& path) {
  const auto text = ReadUntrustedFile(path);
  return text.has_value() ? ParseProgress(*text) : std::nullopt;
}

std::optional<Progress> ReadJobProgress(const JobRecord& job,
                                        const std::vector<TaskRecord>& tasks) {
  const JobDir dir(job.directory);
  for (const bool chief : {true, false}) {
    for (const TaskRecord& task : tasks) {
      if (IsChiefRole(task.id.role) != chief) continue;
      if (auto progress = ReadProgressFile(dir.progress(task.id))) return progress;
    }
  }
  return std::nullopt;
}

std::string DescribeProgress(const Progress& progress) {
  std::string text = absl::StrCat("step ", progress.step);
  if (progress.steps.has_value()) absl::StrAppend(&text, " of ", *progress.steps);
  if (progress.loss.has_value()) absl::StrAppend(&text, ", ", LossText(*progress.loss));
  if (progress.examples_per_second.has_value()) {
    absl::StrAppend(&text, ", ", RateText(*progress.examples_per_second));
  }
  return text;
}

nlohmann::json ProgressToJson(const Progress& progress) {
  const auto or_null = [](const auto& value) {
    return value.has_value() ? nlohmann::json(*value) : nlohmann::json();
  };
  // nlohmann::json writes a NaN loss as null.
  return {{"step", progress.step},
          {"steps", or_null(progress.steps)},
          {"loss", or_null(progress.loss)},
          {"examples_per_second", or_null(progress.examples_per_second)}};
}

void ProgressMeter::Update(const Progress& progress, absl::Time now) {
  if (last_.has_value() && progress.step == last_->step) {
    last_ = progress;
    return;
  }
  // The step decreases when a restarted task resumes from a checkpoint.
  const bool anew = !last_.has_value() || progress.step < last_->step || now <= last_time_;
  if (anew) {
    rate_ = 0;
    first_time_ = now;
    interval_ = absl::ZeroDuration();
  } else {
    interval_ = now - last_time_;
    const double rate =
        static_cast<double>(progress.step - last_->step) / absl::ToDoubleSeconds(interval_);
    // The second weight yields the plain mean while the measurement is shorter than kMemory.
    const double weight = std::max(1 - std::exp(-absl::FDivDuration(interval_, kMemory)),
                                   absl::FDivDuration(interval_, now - first_time_));
    rate_ += weight * (rate - rate_);
  }
  last_ = progress;
  last_time_ = now;
}

std::optional<absl::Duration> ProgressMeter::Left(absl::Time now) const {
  if (!last_.has_value() || !last_->steps.has_value() || rate_ <= 0) return std::nullopt;
  if (last_time_ - first_time_ < kShortest || last_->step >= *last_->steps) return std::nullopt;
  const auto steps = static_cast<double>(*last_->steps - last_->step);
  const absl::Duration left = absl::Seconds(steps / rate_);
  if (left > kLongestLeft) return std::nullopt;
  // Counts down between two steps, but not further than the last interval if the next is late.
  const absl::Duration since = std::clamp(now - last_time_, absl::ZeroDuration(), interval_);
  return std::max(left - since, absl::Milliseconds(1));  // never 0: steps remain
}

std::string ProgressLine(const Terminal& terminal, const Progress& progress,
                         std::optional<absl::Duration> left) {
  // Some terminals wrap when the last cell is written.
  const int width = terminal.width() - 1;
  std::string line;
  for (const Layout& layout : kLayouts) {
    line = Compose(terminal, progress, left, layout);
    if (DisplayWidth(line) <= width) return line;
  }
  // The last layout has no bar, so the line is ASCII and bytes are cells.
  return line.substr(0, static_cast<size_t>(std::max(0, width)));
}

}  // namespace muster::cli
