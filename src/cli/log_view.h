// Log lines as a person reads them.
#pragma once

#include <map>
#include <string>

#include "cli/terminal.h"
#include "launch/log_reader.h"

namespace muster::cli {

// Prints "worker:1 | text", the prefix in a colour of the task's own; without a prefix when only
// one task is shown.
class LogView {
 public:
  struct Options {
    bool prefix = true;
    bool timestamps = false;
    bool json = false;
  };
  LogView(Terminal& terminal, Options options) : terminal_(terminal), options_(options) {}

  // Makes room for the prefix of this task.
  void Expect(const TaskId& task);
  void Print(const LogLine& line);
  // Everything that `stream` has by now.
  void PrintAvailable(LogStream& stream);
  // Rest of lines without an end. False when there is none.
  bool PrintPartials(LogStream& stream);

 private:
  const std::string& PrefixOf(const TaskId& task);

  Terminal& terminal_;
  const Options options_;
  size_t width_ = 0;
  std::map<TaskId, Style> styles_;
  std::map<TaskId, std::string> prefixes_;  // as wide as the widest task so far
};

}  // namespace muster::cli
