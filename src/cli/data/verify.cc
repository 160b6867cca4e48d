// muster data verify: checks that TFRecord files are intact.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/data/commands.h"
#include "data/tfrecord/record_file.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

constexpr int64_t kRecordsPerSignalCheck = 1024;

struct Totals {
  int64_t files = 0;
  int64_t damaged_files = 0;
  int64_t records = 0;
  int64_t bytes = 0;
};

// Returns false if the user asked to stop.
absl::StatusOr<bool> VerifyFile(Context& context, const std::string& path,
                                const process::HeldSignals& signals, Totals& totals) {
  MUSTER_ASSIGN_OR_RETURN(const data::RecordFile file, data::RecordFile::Open(path));
  StatusLine line(context.err());
  data::RecordReader reader(file, data::OnError::kSkip);
  const std::string name = base::Printable(path);
  int64_t records = 0;
  for (;; ++records) {
    MUSTER_ASSIGN_OR_RETURN(const auto record, reader.Next());
    if (!record) break;
    line.ShowBytes(name, reader.offset(), static_cast<int64_t>(file.bytes().size()));
    if (records % kRecordsPerSignalCheck == 0 && signals.any()) return false;
  }
  line.Clear();
  ++totals.files;
  totals.records += records;
  totals.bytes += file.bytes_on_disk();
  Terminal& out = context.out();
  if (reader.problems().empty()) {
    out.PrintLine(absl::StrCat(name, ": ", out.Paint(Style::kGreen, "ok"), ", ",
                               base::Plural(records, "record")));
    return true;
  }
  ++totals.damaged_files;
  out.PrintLine(
      absl::StrCat(name, ": ", out.Paint(Style::kRed, "damaged"), ", ",
                   base::Plural(records, "record"), " can be read, ", reader.damaged_records(),
                   reader.damaged_records() == 1 ? " is damaged, " : " are damaged, ",
                   base::FormatBytes(reader.bytes_left_out()), " at the end cannot be read"));
  for (const std::string& problem : reader.problems()) {
    out.PrintLine(absl::StrCat("  ", base::Printable(problem)));
  }
  return true;
}

absl::StatusOr<int> Verify(Context& context, const std::vector<std::string>& arguments) {
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> files, RecordFilesIn(context, arguments));
  const process::HeldSignals signals;
  Totals totals;
  for (const std::string& path : files) {
    MUSTER_ASSIGN_OR_RETURN(const bool go_on, VerifyFile(context, path, signals, totals));
    if (!go_on) return kInterrupted;
  }
  context.out().PrintLine(
      absl::StrCat(base::Plural(totals.files, "file"), ", ", base::Plural(totals.records, "record"),
                   ", ", base::FormatBytes(totals.bytes), ": ",
                   totals.damaged_files == 0 ? std::string("all checksums match.")
                                             : absl::StrCat(totals.damaged_files, " damaged.")));
  if (totals.damaged_files == 0) return kSuccess;
  context.err().Note(
      "download the damaged files again; or skip the damage in training: 'on_error: skip' in the "
      "job's data");
  return kFailure;
}

}  // namespace

void AddDataVerifyCommand(Command& data, Context& context) {
  Command& command = data.AddCommand("verify", "Verify the checksums of TFRecord files");
  auto files = std::make_shared<std::vector<std::string>>();
  command.Argument("FILE", files.get(), "TFRecord files, globs, or folders of them",
                   Presence::kRequired);
  command.OnCall([&context, files] { return Verify(context, *files); });
}

}  // namespace muster::cli
