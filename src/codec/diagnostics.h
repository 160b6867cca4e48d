// Mistakes in a text, with the place of each.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::codec {

// A place in a text, counted from 1; columns count bytes. {0, 0}: the text as a whole.
struct Mark {
  int line = 0;
  int column = 0;
  auto operator<=>(const Mark&) const = default;
};

// A user's word as a message shows it: in quotes, printable, cut when it is long.
std::string Quoted(absl::string_view word);

// Collects mistakes so that a user sees all of them at once. At most kLimit are kept; the rest are
// counted.
class Diagnostics {
 public:
  static constexpr size_t kLimit = 100;
  static constexpr size_t kWarningLimit = 20;
  // Names the place of a mark; "" for the whole text. Must outlive the diagnostics' use.
  using Locator = std::function<std::string(Mark)>;

  explicit Diagnostics(std::string file) : file_(std::move(file)) {}
  // Of an object that no file holds: places are what `locate` returns.
  explicit Diagnostics(Locator locate) : locate_(std::move(locate)) {}
  void Add(Mark mark, std::string message);
  // For the author's attention; not a mistake. At most kWarningLimit are kept.
  void Warn(Mark mark, std::string message);
  // No more warnings are kept, so that a costly one need not be made.
  bool warned_enough() const { return warnings_.size() >= kWarningLimit; }
  bool empty() const { return items_.empty(); }
  // No more are kept, so that a costly message need not be made.
  bool full() const { return items_.size() >= kLimit; }
  size_t count() const { return items_.size() + dropped_; }
  // OK when there are none, else InvalidArgument with one "file:line:column: message" a line, in
  // order of place.
  absl::Status ToStatus() const;
  // The same form, in order of place.
  std::vector<std::string> Warnings() const;

 private:
  struct Item {
    Mark mark;
    std::string message;
  };
  std::string Place(Mark mark) const;
  static std::vector<Item> Sorted(std::vector<Item> items);

  std::string file_;
  Locator locate_;
  std::vector<Item> items_;
  std::vector<Item> warnings_;
  size_t dropped_ = 0;
};

}  // namespace muster::codec
