#include "codec/diagnostics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/text/terminal_text.h"

namespace muster::codec {

std::string Quoted(absl::string_view word) {
  constexpr int kCells = 60;
  // Bounds the cost of Printable(): input may be megabytes long, and the rest is cut anyway.
  constexpr size_t kBytes = 16 * kCells;
  return absl::StrCat("'", base::Ellipsize(base::Printable(word.substr(0, kBytes)), kCells), "'");
}

void Diagnostics::Add(Mark mark, std::string message) {
  if (full()) {
    ++dropped_;
    return;
  }
  items_.push_back({mark, std::move(message)});
}

void Diagnostics::Warn(Mark mark, std::string message) {
  if (!warned_enough()) warnings_.push_back({mark, std::move(message)});
}

std::string Diagnostics::Location(Mark mark) const {
  if (const auto named = names_.find(mark); named != names_.end()) {
    return absl::StrCat(named->second, ": ");
  }
  if (locate_) {
    const std::string path = locate_(mark);
    return path.empty() ? "" : absl::StrCat(path, ": ");
  }
  if (mark == Mark{}) return file_.empty() ? "" : absl::StrCat(file_, ": ");
  return absl::StrCat(file_, file_.empty() ? "" : ":", mark.line, ":", mark.column, ": ");
}

std::vector<Diagnostics::Item> Diagnostics::Sorted(std::vector<Item> items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.mark < b.mark; });
  return items;
}

std::vector<std::string> Diagnostics::Warnings() const {
  std::vector<std::string> texts;
  for (const Item& item : Sorted(warnings_)) {
    texts.push_back(absl::StrCat(Location(item.mark), item.message));
  }
  return texts;
}

absl::Status Diagnostics::ToStatus() const {
  if (empty()) return absl::OkStatus();
  std::string text;
  for (const Item& item : Sorted(items_)) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", Location(item.mark), item.message);
  }
  if (dropped_ > 0) {
    absl::StrAppend(&text, "\n", Location({}), "and ", dropped_, " more mistake",
                    dropped_ == 1 ? "" : "s");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace muster::codec
