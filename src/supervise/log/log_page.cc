#include "supervise/log/log_page.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::supervise {
namespace {

constexpr int kBatch = 1000;  // lines of one log that are read backwards at once

struct PlacedLine {
  LogLine line;
  LogPosition begin, end;
};

bool Matches(const LogPageQuery& query, const LogLine& line) {
  return !query.condition || query.condition(line);
}

int64_t CostOf(const PlacedLine& placed) {
  return static_cast<int64_t>(placed.line.text.size()) + 1;
}

LogPosition PositionIn(const LogCursor& cursor, const cluster::TaskId& task) {
  const auto found = cursor.find(task);
  return found == cursor.end() ? LogPosition{} : found->second;
}

// Reads one log backwards.
class BackwardSource {
 public:
  BackwardSource(const LogPageQuery& query, const cluster::TaskId& task,
                 const std::optional<LogCursor>& cursor)
      : complete_(query.complete), reader_(query.directory, task), at_(reader_.newest()) {
    if (cursor) at_ = std::min(at_, PositionIn(*cursor, task));
  }

  // Returns the line before position(), or null at the start of the log.
  const PlacedLine* Last() {
    if (lines_.empty()) Fill();
    return lines_.empty() ? nullptr : &lines_.back();
  }
  PlacedLine Take() {
    PlacedLine line = std::move(lines_.back());
    lines_.pop_back();
    at_ = line.begin;
    return line;
  }
  const LogPosition& position() const { return at_; }
  const cluster::TaskId& task() const { return reader_.task(); }

 private:
  void Fill() {
    if (at_ <= reader_.oldest()) return;
    reader_.SeekBefore(at_, kBatch);
    for (;;) {
      const LogPosition begin = reader_.position();
      if (begin >= at_) return;
      std::optional<LogLine> line = reader_.Next();
      if (!line && complete_) line = reader_.TakePartial();
      if (!line) {
        at_ = begin;  // the line that the task is writing belongs to the next page
        return;
      }
      lines_.push_back({*std::move(line), begin, reader_.position()});
    }
  }

  const bool complete_;
  LogReader reader_;
  LogPosition at_;
  std::deque<PlacedLine> lines_;
};

// Reads one log forwards.
class ForwardSource {
 public:
  ForwardSource(const LogPageQuery& query, const cluster::TaskId& task, const LogCursor& cursor)
      : complete_(query.complete), reader_(query.directory, task) {
    at_ = PositionIn(cursor, task);
    reader_.Seek(std::max(at_, reader_.oldest()));
  }

  // Returns the line at position(), or null if there is none yet.
  const PlacedLine* First() {
    if (line_ || exhausted_) return line_ ? &*line_ : nullptr;
    const LogPosition begin = reader_.position();
    std::optional<LogLine> line = reader_.Next();
    if (!line && complete_) line = reader_.TakePartial();
    exhausted_ = !line;
    if (line) line_ = PlacedLine{*std::move(line), begin, reader_.position()};
    return line_ ? &*line_ : nullptr;
  }
  PlacedLine Take() {
    PlacedLine line = *std::exchange(line_, std::nullopt);
    at_ = line.end;
    return line;
  }
  const LogPosition& position() const { return at_; }
  const cluster::TaskId& task() const { return reader_.task(); }

 private:
  const bool complete_;
  LogReader reader_;
  LogPosition at_;
  std::optional<PlacedLine> line_;
  bool exhausted_ = false;
};

template <typename Source>
LogCursor PositionsOf(const std::deque<Source>& sources) {
  LogCursor cursor;
  for (const Source& source : sources) cursor[source.task()] = source.position();
  return cursor;
}

}  // namespace

std::string FormatLogCursor(const LogCursor& cursor) {
  return absl::StrJoin(cursor, ",", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first.ToString(), "@", entry.second.segment, ".",
                    entry.second.offset);
  });
}

absl::StatusOr<LogCursor> ParseLogCursor(absl::string_view text) {
  LogCursor cursor;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(part, '@');
    const std::pair<absl::string_view, absl::string_view> numbers =
        absl::StrSplit(sides.second, absl::MaxSplits('.', 1));
    const auto task = cluster::TaskId::Parse(sides.first);
    LogPosition position;
    if (!task.ok() || !absl::SimpleAtoi(numbers.first, &position.segment) ||
        !absl::SimpleAtoi(numbers.second, &position.offset)) {
      return absl::InvalidArgumentError("not a cursor of a page of logs");
    }
    cursor[*task] = position;
  }
  return cursor;
}

LogPage ReadOlderLines(const LogPageQuery& query, const std::optional<LogCursor>& cursor) {
  std::deque<BackwardSource> sources;
  for (const cluster::TaskId& task : query.tasks) sources.emplace_back(query, task, cursor);
  LogPage page;
  for (BackwardSource& source : sources) source.Last();
  page.newer = PositionsOf(sources);
  page.at_end = !cursor.has_value();
  int64_t cost = 0;
  while (static_cast<int>(page.lines.size()) < query.limit && cost < query.max_bytes) {
    BackwardSource* newest = nullptr;
    for (BackwardSource& source : sources) {
      if (source.Last() == nullptr) continue;
      // Among equal times the last task is the newest, because going forward the first one leads.
      if (newest == nullptr || source.Last()->line.time >= newest->Last()->line.time) {
        newest = &source;
      }
    }
    if (newest == nullptr) {
      page.at_start = true;
      break;
    }
    PlacedLine taken = newest->Take();
    cost += CostOf(taken);
    if (Matches(query, taken.line)) page.lines.push_back(std::move(taken.line));
  }
  std::reverse(page.lines.begin(), page.lines.end());
  page.older = PositionsOf(sources);
  return page;
}

LogPage ReadNewerLines(const LogPageQuery& query, const LogCursor& cursor) {
  std::deque<ForwardSource> sources;
  for (const cluster::TaskId& task : query.tasks) sources.emplace_back(query, task, cursor);
  LogPage page;
  page.older = PositionsOf(sources);
  int64_t cost = 0;
  while (static_cast<int>(page.lines.size()) < query.limit && cost < query.max_bytes) {
    ForwardSource* oldest = nullptr;
    for (ForwardSource& source : sources) {
      if (source.First() == nullptr) continue;
      if (oldest == nullptr || source.First()->line.time < oldest->First()->line.time) {
        oldest = &source;
      }
    }
    if (oldest == nullptr) {
      page.at_end = true;
      break;
    }
    PlacedLine taken = oldest->Take();
    cost += CostOf(taken);
    if (Matches(query, taken.line)) page.lines.push_back(std::move(taken.line));
  }
  page.newer = PositionsOf(sources);
  return page;
}

}  // namespace muster::supervise
