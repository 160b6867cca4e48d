#include "supervise/log/filtered_log.h"

namespace muster::supervise {

std::optional<LogLine> FilteredLogStream::NextMatch() {
  auto line = stream_->Next();
  while (line.has_value() && !condition_(*line)) line = stream_->Next();
  return line;
}

std::optional<LogLine> FilteredLogStream::Next() {
  if (ready_.empty()) return NextMatch();
  LogLine line = std::move(ready_.front());
  ready_.pop_front();
  return line;
}

void FilteredLogStream::SeekTail(int count) {
  ready_.clear();
  stream_->Acknowledge();
  while (auto line = NextMatch()) {
    ready_.push_back(*std::move(line));
    if (ready_.size() > static_cast<size_t>(count)) ready_.pop_front();
  }
}

std::vector<LogLine> FilteredLogStream::TakePartials() {
  std::vector<LogLine> lines = stream_->TakePartials();
  std::erase_if(lines, [this](const LogLine& line) { return !condition_(line); });
  return lines;
}

}  // namespace muster::supervise
