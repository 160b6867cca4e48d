// The lines of a log stream that satisfy a condition.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "supervise/log/log_reader.h"

namespace muster::supervise {

using LogCondition = std::function<bool(const LogLine&)>;

// Wraps any LogStream and owns it. SeekTail() counts only lines that satisfy the condition, and
// reads the whole log for that.
class FilteredLogStream final : public LogStream {
 public:
  FilteredLogStream(std::unique_ptr<LogStream> stream, LogCondition condition)
      : stream_(std::move(stream)), condition_(std::move(condition)) {}

  void SeekTail(int count) override;
  void SeekTime(absl::Time since) override { stream_->SeekTime(since); }
  void AddTask(const cluster::TaskId& task) override { stream_->AddTask(task); }
  std::optional<LogLine> Next() override;
  std::vector<LogLine> TakePartials() override;
  int fd() const override { return stream_->fd(); }
  void Acknowledge() override { stream_->Acknowledge(); }

 private:
  std::optional<LogLine> NextMatch();

  const std::unique_ptr<LogStream> stream_;
  const LogCondition condition_;
  std::deque<LogLine> ready_;  // collected by SeekTail
};

}  // namespace muster::supervise
