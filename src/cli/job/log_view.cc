#include "cli/job/log_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/units.h"
#include "cli/terminal/print_json.h"

namespace muster::cli {

void LogView::Expect(const cluster::TaskId& task) {
  const size_t width = task.ToString().size();
  if (width <= width_) return;
  width_ = width;
  prefixes_.clear();
}

const std::string& LogView::PrefixOf(const cluster::TaskId& task) {
  const auto known = prefixes_.find(task);
  if (known != prefixes_.end()) return known->second;
  Expect(task);
  constexpr Style kStyles[] = {Style::kCyan, Style::kGreen, Style::kMagenta, Style::kYellow,
                               Style::kBlue};
  const Style style =
      styles_.try_emplace(task, kStyles[styles_.size() % std::size(kStyles)]).first->second;
  const std::string text = absl::StrFormat("%-*s |", static_cast<int>(width_), task.ToString());
  return prefixes_[task] = terminal_.Paint(style, text) + " ";
}

void LogView::Print(const supervise::LogLine& line) {
  if (options_.json) {
    const nlohmann::json json = {
        {"task", line.task.ToString()},
        {"attempt", line.attempt + 1},
        {"time", absl::FormatTime(absl::RFC3339_full, line.time, absl::UTCTimeZone())},
        {"text", line.text}};
    PrintJson(terminal_, json, /*indent=*/-1);
    return;
  }
  std::string text;
  if (options_.timestamps) {
    text = absl::StrCat(terminal_.Paint(Style::kDim, base::FormatLocalTime(line.time)), " ");
  }
  if (options_.prefix) absl::StrAppend(&text, PrefixOf(line.task));
  terminal_.PrintData(absl::StrCat(text, line.text, "\n"));
}

void LogView::PrintAvailable(supervise::LogStream& stream) {
  stream.Acknowledge();
  while (terminal_.ok()) {
    const auto line = stream.Next();
    if (!line.has_value()) break;
    Print(*line);
  }
  terminal_.Flush();
}

bool LogView::PrintPartials(supervise::LogStream& stream) {
  const std::vector<supervise::LogLine> partials = stream.TakePartials();
  for (const supervise::LogLine& line : partials) Print(line);
  terminal_.Flush();
  return !partials.empty();
}

}  // namespace muster::cli
