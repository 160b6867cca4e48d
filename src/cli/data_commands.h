// The commands under `muster data`, one file each, and what they share.
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

// One line on a terminal that says how far something is, drawn anew a few times a second; nothing
// elsewhere.
class StatusLine {
 public:
  explicit StatusLine(Terminal& terminal) : terminal_(terminal) {}
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // "WHAT  2.1MiB of 9.5MiB"; a number that is 0 is not known.
  void ShowBytes(const std::string& what, int64_t bytes, int64_t total);
  // "WHAT  1200 of 60000 (2%)"
  void ShowCount(const std::string& what, int64_t done, int64_t total);
  void Clear() { terminal_.SetStatus(""); }

 private:
  bool Due();
  void Draw(const std::string& text);

  Terminal& terminal_;
  absl::Time next_ = absl::InfinitePast();
};

// The record files that arguments mean: files, globs, and folders with all their files; of URLs,
// copies on this machine.
absl::StatusOr<std::vector<std::string>> RecordFilesIn(Context& context,
                                                       const std::vector<std::string>& arguments);

}  // namespace muster::cli
