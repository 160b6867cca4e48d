// muster data convert: converts other formats to TFRecord shards.
#include "data/convert/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "base/text/units.h"
#include "cli/data/commands.h"
#include "data/classes.h"
#include "data/convert/convert_target.h"
#include "data/normalization.h"
#include "process/held_signals.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using Sources = std::vector<data::SplitSource>;

constexpr int kMaxShards = 99'999;
constexpr double kShareError = 1e-6;

struct ConvertOptions {
  std::string from;
  std::string to;
  int shards = 1;
  std::string compression = "none";
  std::string split = "train";
  std::string label;
  std::string columns;
  std::string drop;
  std::string resize;
  bool normalize = false;
  bool add_classes = false;
  bool force = false;
};

absl::Status CheckOptions(const ConvertOptions& options) {
  if (options.to.empty()) {
    return absl::InvalidArgumentError("missing --to FOLDER, the folder for the shards");
  }
  if (options.shards < 1 || options.shards > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shards: ", options.shards, " must be from 1 to ", kMaxShards));
  }
  return absl::OkStatus();
}

absl::Status CheckSplitName(absl::string_view name) {
  if (!name.empty() && !absl::StrContains(name, '/')) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--split: a split is a prefix of file names, so it must not be empty or contain /");
}

// Parses "train" or "train=0.8,test=0.2".
absl::StatusOr<std::vector<data::SplitShare>> ParseSplits(absl::string_view text) {
  if (!absl::StrContains(text, '=')) {
    MUSTER_RETURN_IF_ERROR(CheckSplitName(text));
    return std::vector<data::SplitShare>{{std::string(text), 1}};
  }
  std::vector<data::SplitShare> shares;
  double sum = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    data::SplitShare share{.split = pair.first};
    MUSTER_RETURN_IF_ERROR(CheckSplitName(share.split));
    const bool twice = std::any_of(shares.begin(), shares.end(),
                                   [&](const auto& other) { return other.split == share.split; });
    if (!absl::SimpleAtod(pair.second, &share.fraction) || !(share.fraction > 0) ||
        share.fraction > 1 || twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("--split: '", part, "' must be a new name and its share, such as test=0.2"));
    }
    sum += share.fraction;
    shares.push_back(std::move(share));
  }
  if (std::abs(sum - 1) <= kShareError) return shares;
  return absl::InvalidArgumentError(
      absl::StrCat("--split: the shares add up to ", sum, "; they must add up to 1"));
}

// Parses "224" or "224x300": the height and the width.
absl::StatusOr<data::ImageSize> ParseSize(const std::string& text) {
  constexpr int64_t kMaxSide = 1 << 14;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, 'x');
  data::ImageSize size;
  if (parts.size() <= 2 && absl::SimpleAtoi(parts.front(), &size.height) &&
      absl::SimpleAtoi(parts.back(), &size.width) && size.height >= 1 && size.width >= 1 &&
      size.height <= kMaxSide && size.width <= kMaxSide) {
    return size;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--resize: '", text, "' must be HEIGHTxWIDTH, such as 224x224, each from 1 to ", kMaxSide));
}

absl::StatusOr<Sources> SourcesOf(const ConvertOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const auto shares, ParseSplits(options.split));
  data::SourceOptions wanted{
      .split = shares.front().split,
      .columns = {.label = options.label,
                  .keep = absl::StrSplit(options.columns, ',', absl::SkipWhitespace()),
                  .drop = absl::StrSplit(options.drop, ',', absl::SkipWhitespace())}};
  if (!options.resize.empty()) {
    MUSTER_ASSIGN_OR_RETURN(wanted.resize, ParseSize(options.resize));
  }
  MUSTER_ASSIGN_OR_RETURN(auto sources, data::FindSources(options.from, wanted));
  if (shares.size() == 1) return sources;
  if (sources.size() == 1) return data::Divide(std::move(sources.front().examples), shares);
  return absl::InvalidArgumentError(absl::StrCat(
      "--split: ", options.from, " already has splits, ", sources.front().split, ", ",
      sources[1].split, sources.size() > 2 ? " …" : "", ", and cannot be divided again"));
}

// A split with fewer examples than shards gets one shard per example.
data::ShardOptions ShardsOf(const ConvertOptions& options, const std::string& folder,
                            const data::SplitSource& source) {
  return {.folder = folder,
          .split = source.split,
          .shards = std::min<int64_t>(options.shards, source.examples->size()),
          .compression =
              data::ParseCompression(options.compression).value_or(data::Compression::kNone)};
}

bool IsShardOfAny(absl::string_view name, const Sources& sources) {
  return std::any_of(sources.begin(), sources.end(), [name](const data::SplitSource& source) {
    return data::IsShardOf(name, source.split);
  });
}

// Returns whether a job that reads one of the splits would read a file of that name.
bool IsReadWith(absl::string_view name, const Sources& sources) {
  return std::any_of(sources.begin(), sources.end(), [name](const data::SplitSource& source) {
    return absl::StartsWith(name, source.split + "-");
  });
}

// Rejects existing files of the same splits, which jobs would mix with the new ones, and files of
// other splits whose labels may be numbered differently.
absl::Status CheckTarget(const ConvertOptions& options, const Sources& sources) {
  std::error_code error;
  const bool numbered = fs::exists(base::JoinPath(options.to, data::kClassesFile), error);
  const bool by_name = !sources.front().examples->class_names().empty();
  for (const auto& entry : fs::directory_iterator(options.to, error)) {
    const std::string name = entry.path().filename().string();
    if (IsReadWith(name, sources)) {
      if (options.force) continue;
      return absl::AlreadyExistsError(
          absl::StrCat(entry.path().string(), " already exists; choose another folder with --to, ",
                       "or replace it with --force"));
    }
    if (by_name && !numbered && absl::StrContains(name, ".tfrecord")) {
      return absl::FailedPreconditionError(absl::StrCat(
          entry.path().string(), " belongs to another split, and without ", data::kClassesFile,
          " the numbers of its labels are unknown; convert all splits into another folder"));
    }
  }
  return absl::OkStatus();
}

// Returns the scales by which the sources are normalized from now on; none without --normalize.
absl::StatusOr<std::vector<data::FeatureScale>> Scale(const ConvertOptions& options,
                                                      const Sources& sources) {
  MUSTER_ASSIGN_OR_RETURN(const auto existing, data::ReadNormalization(options.to));
  if (options.normalize) return data::Normalize(sources, existing);
  if (existing.empty()) return existing;
  return absl::FailedPreconditionError(absl::StrCat(
      options.to, " has normalized features (", data::kNormalizationFile,
      "); add --normalize to use the same scales, or choose another folder with --to"));
}

// Removes old shards of another count, which --force would leave beside the new ones.
void RemoveStale(const std::string& folder, const Sources& sources,
                 const std::vector<std::string>& fresh) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_new = std::find(fresh.begin(), fresh.end(), name) != fresh.end();
    if (IsShardOfAny(name, sources) && !is_new && entry.is_regular_file(error)) {
      stale.push_back(entry.path());
    }
  }
  for (const auto& path : stale) fs::remove(path, error);
}

// Shows progress. Returns Cancelled if the user asks to stop.
absl::Status WriteSplit(Context& context, const data::SplitSource& source,
                        const data::ShardOptions& shards, const process::HeldSignals& signals) {
  StatusLine line(context.err());
  const std::string name = base::Printable(source.split);
  return data::WriteShards(*source.examples, shards, [&](int64_t done, int64_t total) {
    line.ShowCount(name, done, total);
    return !signals.any();
  });
}

// Prints the result of a split and its note.
void Report(Context& context, const data::SplitSource& source, const data::ShardOptions& shards) {
  context.out().PrintLine(base::Printable(
      absl::StrCat(source.split, ": ", base::Plural(source.examples->size(), "example"), " in ",
                   base::Plural(shards.shards, "shard"), ", ",
                   base::JoinPath(shards.folder, data::ShardNames(shards).front()),
                   shards.shards == 1 ? "" : " …")));
  const std::string note = source.examples->note();
  if (!note.empty()) context.err().Note(base::Printable(note));
}

// Writes all splits, then publishes them together.
absl::StatusOr<data::Numbering> ConvertAll(Context& context, const ConvertOptions& options,
                                           const Sources& sources,
                                           const process::HeldSignals& signals) {
  // Locks the folder before reading classes.txt, so that label numbers stay consistent.
  MUSTER_ASSIGN_OR_RETURN(data::ConvertTarget target, data::ConvertTarget::Open(options.to));
  MUSTER_RETURN_IF_ERROR(CheckTarget(options, sources));
  MUSTER_ASSIGN_OR_RETURN(const auto existing, data::ReadClasses(options.to));
  MUSTER_ASSIGN_OR_RETURN(data::Numbering numbering,
                          data::NumberClasses(sources, existing, options.add_classes));
  MUSTER_ASSIGN_OR_RETURN(const auto scales, Scale(options, sources));
  std::vector<std::string> names;
  for (const data::SplitSource& source : sources) {
    const data::ShardOptions shards = ShardsOf(options, target.staging(), source);
    MUSTER_RETURN_IF_ERROR(WriteSplit(context, source, shards, signals));
    for (std::string& name : data::ShardNames(shards)) names.push_back(std::move(name));
  }
  // classes.txt goes first: a class that no shard uses yet is harmless.
  if (!numbering.classes.empty()) {
    MUSTER_RETURN_IF_ERROR(data::WriteClasses(options.to, numbering.classes));
  }
  if (!scales.empty()) MUSTER_RETURN_IF_ERROR(data::WriteNormalization(options.to, scales));
  MUSTER_RETURN_IF_ERROR(target.Publish(names));
  RemoveStale(options.to, sources, names);
  return numbering;
}

absl::StatusOr<int> Convert(Context& context, const ConvertOptions& options) {
  MUSTER_RETURN_IF_ERROR(context.CheckWorkingDir());
  MUSTER_RETURN_IF_ERROR(CheckOptions(options));
  MUSTER_ASSIGN_OR_RETURN(const auto sources, SourcesOf(options));
  const process::HeldSignals signals;
  const auto numbering = ConvertAll(context, options, sources, signals);
  if (absl::IsCancelled(numbering.status())) return kInterrupted;
  MUSTER_RETURN_IF_ERROR(numbering.status());
  for (const data::SplitSource& source : sources) {
    Report(context, source, ShardsOf(options, options.to, source));
  }
  if (const auto& added = numbering->added; !added.empty()) {
    context.err().Note(base::Printable(
        absl::StrCat("new classes, numbered from ", numbering->classes.size() - added.size(), ": ",
                     absl::StrJoin(added, ", "), "; ", data::kClassesFile, " lists all")));
  }
  context.out().PrintLine(absl::StrCat(
      "a job reads it with\n  data: {format: tfrecord, path: ", base::Printable(options.to),
      ", features: ", sources.front().examples->features(), "}"));
  return kSuccess;
}

}  // namespace

void AddDataConvertCommand(Command& data, Context& context) {
  Command& command = data.AddCommand("convert", "Write a data set as TFRecord shards");
  auto options = std::make_shared<ConvertOptions>();
  command.Argument("FROM", &options->from,
                   "A folder of IDX files (like MNIST), a .csv file, or a folder with a folder of "
                   "JPEG and PNG images for each class",
                   Presence::kRequired);
  command.Option("--to", &options->to, "The folder for the shards");
  command.Option("--shards", &options->shards, "The number of files per split (1)");
  command.Option("--compression", &options->compression, "The compression of the shards (none)",
                 {"none", "gzip", "zlib"});
  command.Option("--split", &options->split,
                 "The name of the split if FROM has none (train); or several with their shares, "
                 "to divide FROM at random but reproducibly: train=0.8,test=0.2");
  command.Option("--label", &options->label,
                 "The column of a .csv file to learn (label, target, class, y, or the last)");
  command.Option("--columns", &options->columns,
                 "The columns of a .csv file to use as features, in this order: age,height. "
                 "Without a header, their numbers from 1");
  command.Option("--drop", &options->drop, "The columns of a .csv file to leave out");
  command.Exclude("--columns", "--drop");
  command.Flag("--normalize", &options->normalize,
               "Scale each feature of a .csv file to a mean of 0 and a deviation of 1, by the "
               "first split; later conversions into the folder use the same scales");
  command.Option("--resize", &options->resize,
                 "Scale images to HEIGHTxWIDTH, and store them as PNG");
  command.Flag("--add-classes", &options->add_classes,
               "Append new labels to classes.txt of the folder instead of rejecting them");
  command.Flag("--force", &options->force, "Replace existing shards");
  command.OnCall([&context, options] { return Convert(context, *options); });
}

}  // namespace muster::cli
