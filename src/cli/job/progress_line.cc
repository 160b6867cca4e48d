#include "cli/job/progress_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"

namespace muster::cli {
namespace {

using jobs::Progress;

constexpr int kBarCells = 20;

std::string LeftText(absl::Duration left) {
  if (left >= absl::Hours(24)) return absl::StrCat(base::FormatElapsed(left), " left");
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
  const int blank = cells - base::DisplayWidth(bar);
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
  if (layout.loss && progress.loss.has_value())
    fields.push_back(jobs::DescribeLoss(*progress.loss));
  if (layout.rate && progress.examples_per_second.has_value()) {
    fields.push_back(jobs::DescribeRate(*progress.examples_per_second));
  }
  if (layout.left && left.has_value()) fields.push_back(LeftText(*left));
  return absl::StrCat(line, "  ", absl::StrJoin(fields, "  "));
}

}  // namespace

std::string ProgressLine(const Terminal& terminal, const Progress& progress,
                         std::optional<absl::Duration> left) {
  // Some terminals wrap when the last cell is written.
  const int width = terminal.width() - 1;
  std::string line;
  for (const Layout& layout : kLayouts) {
    line = Compose(terminal, progress, left, layout);
    if (base::DisplayWidth(line) <= width) return line;
  }
  // The last layout has no bar, so the line is ASCII and bytes are cells.
  return line.substr(0, static_cast<size_t>(std::max(0, width)));
}

}  // namespace muster::cli
