// Mistakes in a text, with the place of each.
#pragma once

#include <compare>
#include <cstddef>
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

  explicit Diagnostics(std::string file) : file_(std::move(file)) {}
  void Add(Mark mark, std::string message);
  bool empty() const { return items_.empty(); }
  // No more are kept, so that a costly message need not be made.
  bool full() const { return items_.size() >= kLimit; }
  size_t count() const { return items_.size() + dropped_; }
  // OK when there are none, else InvalidArgument with one "file:line:column: message" a line, in
  // order of place.
  absl::Status ToStatus() const;

 private:
  struct Item {
    Mark mark;
    std::string message;
  };
  std::string file_;
  std::vector<Item> items_;
  size_t dropped_ = 0;
};

}  // namespace muster::codec
