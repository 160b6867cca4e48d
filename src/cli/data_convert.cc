// muster data convert: other formats as TFRecord shards.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/terminal_text.h"
#include "cli/data_commands.h"
#include "cli/held_signals.h"
#include "data/convert.h"

namespace muster::cli {
namespace {

constexpr int kMaxShards = 99'999;
constexpr char kClassesFile[] = "classes.txt";

struct ConvertOptions {
  std::string from;
  std::string to;
  int shards = 1;
  std::string compression = "none";
  std::string split = "train";
  std::string label;
  bool force = false;
};

absl::Status CheckOptions(const ConvertOptions& options) {
  if (options.to.empty()) {
    return absl::InvalidArgumentError("where to? `--to FOLDER` is where the shards go");
  }
  if (options.shards < 1 || options.shards > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shards: ", options.shards, " is not from 1 to ", kMaxShards));
  }
  if (options.split.empty() || options.split.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        "--split: is the beginning of file names, so it must not be empty or contain /");
  }
  return absl::OkStatus();
}

// A split of fewer examples than shards has one in each.
data::ShardOptions ShardsOf(const ConvertOptions& options, const data::SplitSource& source) {
  return {.folder = options.to,
          .split = source.split,
          .shards = std::min<int64_t>(options.shards, source.examples->size()),
          .compression =
              data::ParseCompression(options.compression).value_or(data::Compression::kNone)};
}

// What is already there of a split would be mixed with what is written.
absl::Status CheckTarget(const ConvertOptions& options,
                         const std::vector<data::SplitSource>& sources) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.to, error)) {
    const std::string name = entry.path().filename().string();
    for (const data::SplitSource& source : sources) {
      if (options.force || !absl::StartsWith(name, source.split + "-")) continue;
      return absl::AlreadyExistsError(absl::StrCat(
          entry.path().string(), " is there already; choose another folder with --to, ",
          "or replace it with --force"));
    }
  }
  return absl::OkStatus();
}

// Shards of another number, which --force leaves beside the new ones.
void RemoveStale(const data::ShardOptions& shards) {
  const std::vector<std::string> fresh = data::ShardNames(shards);
  std::error_code error;
  std::vector<std::filesystem::path> stale;
  for (const auto& entry : std::filesystem::directory_iterator(shards.folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool shard = absl::StartsWith(name, shards.split + "-") &&
                       absl::StrContains(name, ".tfrecord") && entry.is_regular_file(error);
    if (shard && !std::binary_search(fresh.begin(), fresh.end(), name)) {
      stale.push_back(entry.path());
    }
  }
  for (const auto& path : stale) std::filesystem::remove(path, error);
}

// The classes have the same numbers in all splits, or InvalidArgument.
absl::Status CheckClasses(const std::vector<data::SplitSource>& sources) {
  for (const data::SplitSource& source : sources) {
    if (source.examples->class_names() == sources.front().examples->class_names()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the splits ", sources.front().split, " and ", source.split,
        " have different classes, whose numbers would differ; make folders for all in both"));
  }
  return absl::OkStatus();
}

absl::Status WriteClasses(const ConvertOptions& options, const data::ExampleSource& source) {
  const std::vector<std::string> classes = source.class_names();
  if (classes.empty()) return absl::OkStatus();
  return ReplaceFile(JoinPath(options.to, kClassesFile),
                     absl::StrCat(absl::StrJoin(classes, "\n"), "\n"), 0644);
}

// What was done with a split, and what there is to know of it.
void Report(Context& context, const data::SplitSource& source, const data::ShardOptions& shards) {
  context.out().PrintLine(Printable(absl::StrCat(
      source.split, ": ", source.examples->size(), " examples in ", shards.shards,
      shards.shards == 1 ? " shard, " : " shards, ",
      JoinPath(shards.folder, data::ShardNames(shards).front()), shards.shards == 1 ? "" : " …")));
  const std::string note = source.examples->note();
  if (!note.empty()) context.err().Note(Printable(note));
}

absl::StatusOr<int> Convert(Context& context, const ConvertOptions& options) {
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  MUSTER_ASSIGN_OR_RETURN(
      const std::vector<data::SplitSource> sources,
      data::FindSources(options.from, {.split = options.split, .label = options.label}));
  MUSTER_RETURN_IF_ERROR(CheckClasses(sources));
  MUSTER_RETURN_IF_ERROR(CheckTarget(options, sources));
  MUSTER_RETURN_IF_ERROR(MakeDirectories(options.to, 0755));
  const HeldSignals signals;
  for (const data::SplitSource& source : sources) {
    StatusLine line(context.err());
    const data::ShardOptions shards = ShardsOf(options, source);
    const std::string name = Printable(source.split);
    const absl::Status status =
        data::WriteShards(*source.examples, shards, [&](int64_t done, int64_t total) {
          line.ShowCount(name, done, total);
          return !signals.any();
        });
    line.Clear();
    if (absl::IsCancelled(status)) return kInterrupted;
    MUSTER_RETURN_IF_ERROR(status);
    RemoveStale(shards);
    Report(context, source, shards);
  }
  MUSTER_RETURN_IF_ERROR(WriteClasses(options, *sources.front().examples));
  context.out().PrintLine(
      absl::StrCat("a job reads it with\n  data: {format: tfrecord, path: ", Printable(options.to),
                   ", features: ", sources.front().examples->features(), "}"));
  return kSuccess;
}

}  // namespace

void AddDataConvertCommand(Command& data, Context& context) {
  Command& command = data.AddCommand("convert", "Write a data set as TFRecord shards");
  auto options = std::make_shared<ConvertOptions>();
  command.Argument("FROM", &options->from,
                   "A folder of IDX files (as MNIST), a .csv file, or a folder with a folder of "
                   "JPEG and PNG images for each class",
                   Presence::kRequired);
  command.Option("--to", &options->to, "The folder where the shards go");
  command.Option("--shards", &options->shards, "Into how many files a split is divided (1)");
  command.Option("--compression", &options->compression, "How the shards are compressed (none)",
                 {"none", "gzip", "zlib"});
  command.Option("--split", &options->split,
                 "The split's name, where FROM does not tell it (train)");
  command.Option("--label", &options->label,
                 "The column of a .csv file that is learnt (label, target, class, y, or the last)");
  command.Flag("--force", &options->force, "Replace shards that are there already");
  command.OnCall([&context, options] { return Convert(context, *options); });
}

}  // namespace muster::cli
