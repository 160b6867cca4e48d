// Collects the mistakes in a text, each with its position.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::codec {

// A position in a text, counted from 1; columns count bytes. {0, 0} stands for the whole text.
struct Mark {
  int line = 0;
  int column = 0;
  auto operator<=>(const Mark&) const = default;
};

// Returns user input as it is shown in messages: quoted, printable, shortened if long.
std::string Quoted(absl::string_view word);

// Collects mistakes so that the user gets all of them at once. Keeps at most kLimit and counts the
// rest. Not thread-safe.
class Diagnostics {
 public:
  static constexpr size_t kLimit = 100;
  static constexpr size_t kWarningLimit = 20;
  // Returns the name of a position; "" for the whole text. Its captures must outlive the
  // diagnostics.
  using Locator = std::function<std::string(Mark)>;

  explicit Diagnostics(std::string file) : file_(std::move(file)) {}
  // For an object that comes from no file: `locate` names the positions.
  explicit Diagnostics(Locator locate) : locate_(std::move(locate)) {}
  // Locates the messages at `mark`, which need not be in the file, by `name` alone.
  void NameMark(Mark mark, std::string name) { names_[mark] = std::move(name); }
  void Add(Mark mark, std::string message);
  // Adds a warning, which does not make ToStatus() fail. Keeps at most kWarningLimit.
  void Warn(Mark mark, std::string message);
  // Returns true if further warnings are dropped, so that callers can skip composing them.
  bool warned_enough() const { return warnings_.size() >= kWarningLimit; }
  bool empty() const { return items_.empty(); }
  // Returns true if further mistakes are only counted, so that callers can skip composing messages.
  bool full() const { return items_.size() >= kLimit; }
  size_t count() const { return items_.size() + dropped_; }
  // Returns OK if there are no mistakes, else InvalidArgument with one "file:line:column: message"
  // per line, ordered by position.
  absl::Status ToStatus() const;
  // Returns the warnings in the same form and order.
  std::vector<std::string> Warnings() const;

 private:
  struct Item {
    Mark mark;
    std::string message;
  };
  std::string Location(Mark mark) const;
  static std::vector<Item> Sorted(std::vector<Item> items);

  std::string file_;
  Locator locate_;
  std::map<Mark, std::string> names_;
  std::vector<Item> items_;
  std::vector<Item> warnings_;
  size_t dropped_ = 0;
};

}  // namespace muster::codec
