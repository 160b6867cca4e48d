#include "cli/data/commands.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "data/tfrecord/record_file.h"
#include "storage/local_copy.h"

namespace muster::cli {

bool StatusLine::Due() {
  if (!terminal_.can_redraw()) return false;
  const absl::Time now = absl::Now();
  if (now < next_) return false;
  next_ = now + absl::Milliseconds(100);
  return true;
}

void StatusLine::Draw(const std::string& text) {
  terminal_.SetStatus(base::Ellipsize(text, terminal_.width() - 1));
}

void StatusLine::ShowBytes(const std::string& what, int64_t bytes, int64_t total) {
  if (!Due()) return;
  std::string text = what;
  if (bytes > 0) absl::StrAppend(&text, "  ", base::FormatBytes(bytes));
  if (total > 0) absl::StrAppend(&text, " of ", base::FormatBytes(total));
  Draw(text);
}

void StatusLine::ShowCount(const std::string& what, int64_t done, int64_t total) {
  if (!Due()) return;
  Draw(absl::StrCat(what, "  ", done, " of ", total, " (", total > 0 ? 100 * done / total : 0,
                    "%)"));
}

absl::StatusOr<std::vector<std::string>> RecordFilesIn(Context& context,
                                                       const std::vector<std::string>& arguments) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& given : arguments) {
    MUSTER_ASSIGN_OR_RETURN(const std::string argument,
                            storage::FetchToLocal(given, [&](const std::string& line) {
                              context.err().PrintLine(line);
                            }));
    if (!fs::is_directory(argument, error)) {
      MUSTER_ASSIGN_OR_RETURN(const auto matches, data::MatchFiles(argument));
      files.insert(files.end(), matches.begin(), matches.end());
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(argument, error)) {
      const bool is_text = entry.path().extension() == ".txt";  // convert's class names
      if (entry.is_regular_file(error) && !is_text) inside.push_back(entry.path().string());
    }
    if (inside.empty()) return absl::NotFoundError(absl::StrCat(argument, ": has no files"));
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace muster::cli
