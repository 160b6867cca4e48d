#include "codec/diagnostics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/terminal_text.h"

namespace muster::codec {
namespace {

std::string Place(const std::string& file, Mark mark) {
  if (mark == Mark{}) return file.empty() ? "" : absl::StrCat(file, ": ");
  return absl::StrCat(file, file.empty() ? "" : ":", mark.line, ":", mark.column, ": ");
}

}  // namespace

std::string Quoted(absl::string_view word) {
  constexpr int kCells = 60;
  // What lies beyond is cut anyway, and a word may be megabytes long.
  constexpr size_t kBytes = 16 * kCells;
  return absl::StrCat("'", Ellipsize(Printable(word.substr(0, kBytes)), kCells), "'");
}

void Diagnostics::Add(Mark mark, std::string message) {
  if (full()) {
    ++dropped_;
    return;
  }
  items_.push_back({mark, std::move(message)});
}

absl::Status Diagnostics::ToStatus() const {
  if (empty()) return absl::OkStatus();
  std::vector<Item> sorted = items_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Item& a, const Item& b) { return a.mark < b.mark; });
  std::string text;
  for (const Item& item : sorted) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", Place(file_, item.mark), item.message);
  }
  if (dropped_ > 0) {
    absl::StrAppend(&text, "\n", Place(file_, {}), "and ", dropped_, " more mistake",
                    dropped_ == 1 ? "" : "s");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace muster::codec
