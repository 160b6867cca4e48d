// Prints log lines, for people or as JSON.
#pragma once

#include <map>
#include <string>

#include "cli/terminal/terminal.h"
#include "supervise/log/log_reader.h"

namespace muster::cli {

// Prints "worker:1 | text", with a colour per task. Does not own the terminal, which must outlive
// this.
class LogView {
 public:
  struct Options {
    bool prefix = true;  // "worker:1 | "
    bool timestamps = false;
    bool json = false;  // one object per line; ignores the other options
  };
  LogView(Terminal& terminal, Options options) : terminal_(terminal), options_(options) {}

  // Widens the prefix column to fit this task.
  void Expect(const cluster::TaskId& task);
  void Print(const supervise::LogLine& line);
  // Prints all lines that `stream` has now, without waiting. Stops if the terminal fails.
  void PrintAvailable(supervise::LogStream& stream);
  // Prints unterminated last lines. Returns false if there are none.
  bool PrintPartials(supervise::LogStream& stream);

 private:
  const std::string& PrefixOf(const cluster::TaskId& task);

  Terminal& terminal_;
  const Options options_;
  size_t width_ = 0;
  std::map<cluster::TaskId, Style> styles_;
  std::map<cluster::TaskId, std::string> prefixes_;  // padded to width_; cleared when that grows
};

}  // namespace muster::cli
