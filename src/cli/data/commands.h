// The commands under `muster data`, one file each, and their shared code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/command.h"
#include "cli/context.h"

namespace muster::cli {

void AddDataFetchCommand(Command& data, Context& context);
void AddDataInspectCommand(Command& data, Context& context);
void AddDataVerifyCommand(Command& data, Context& context);
void AddDataConvertCommand(Command& data, Context& context);

// A progress line on a terminal, redrawn a few times a second. Prints nothing if the output is not
// a terminal.
class StatusLine {
 public:
  explicit StatusLine(Terminal& terminal) : terminal_(terminal) {}
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Shows "WHAT  2.1MiB of 9.5MiB"; a number of 0 is unknown.
  void ShowBytes(const std::string& what, int64_t bytes, int64_t total);
  // Shows "WHAT  1200 of 60000 (2%)".
  void ShowCount(const std::string& what, int64_t done, int64_t total);
  void Clear() { terminal_.SetStatus(""); }

 private:
  bool Due();
  void Draw(const std::string& text);

  Terminal& terminal_;
  absl::Time next_ = absl::InfinitePast();
};

// Returns the record files that arguments name: files, globs, and all files of folders; for URLs,
// their local copies.
absl::StatusOr<std::vector<std::string>> RecordFilesIn(Context& context,
                                                       const std::vector<std::string>& arguments);

}  // namespace muster::cli
