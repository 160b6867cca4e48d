#include "data/convert/convert.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "data/tfrecord/record_writer.h"

namespace muster::data {
namespace {

namespace fs = std::filesystem;

struct IdxNames {
  const char* split;
  const char* images;
  const char* labels;
};
constexpr IdxNames kMnistNames[] = {
    {"train", "train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    {"test", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

bool IsThere(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) || fs::exists(path + ".gz", error);
}

// Returns the names in a folder, sorted.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<SplitSource>> IdxSources(const std::string& folder) {
  std::vector<SplitSource> sources;
  const auto add = [&](const std::string& split, const std::string& images,
                       const std::string& labels) -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(
        auto source, IdxSource(base::JoinPath(folder, images), base::JoinPath(folder, labels)));
    sources.push_back({split, std::move(source)});
    return absl::OkStatus();
  };
  for (const IdxNames& names : kMnistNames) {
    if (!IsThere(base::JoinPath(folder, names.images))) continue;
    MUSTER_RETURN_IF_ERROR(add(names.split, names.images, names.labels));
  }
  if (!sources.empty()) return sources;
  MUSTER_ASSIGN_OR_RETURN(const auto names, NamesIn(folder));
  constexpr absl::string_view kImages = "-images.idx";
  std::set<std::string> splits;
  for (absl::string_view name : names) {
    if (absl::EndsWith(name, ".gz")) name.remove_suffix(3);
    if (!absl::EndsWith(name, kImages) || name.size() == kImages.size()) continue;
    splits.insert(std::string(name.substr(0, name.size() - kImages.size())));
  }
  for (const std::string& split : splits) {
    MUSTER_RETURN_IF_ERROR(add(split, split + "-images.idx", split + "-labels.idx"));
  }
  return sources;
}

// Returns the folders in a folder, sorted.
absl::StatusOr<std::vector<std::string>> FoldersIn(const std::string& folder) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(folder));
  std::error_code error;
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const std::string& name) {
                               return name[0] == '.' ||
                                      !fs::is_directory(base::JoinPath(folder, name), error);
                             }),
              names.end());
  return names;
}

absl::StatusOr<std::vector<SplitSource>> ImageSources(const std::string& folder,
                                                      const SourceOptions& options) {
  const std::set<std::string> known = {"train", "training", "test", "val", "valid", "validation"};
  std::vector<SplitSource> sources;
  MUSTER_ASSIGN_OR_RETURN(const auto folders, FoldersIn(folder));
  if (folders.empty()) return sources;
  const bool by_split = std::all_of(folders.begin(), folders.end(), [&](const std::string& name) {
    return known.count(absl::AsciiStrToLower(name)) > 0;
  });
  if (!by_split) {
    MUSTER_ASSIGN_OR_RETURN(auto source, ImageFolderSource(folder, options.resize));
    sources.push_back({options.split, std::move(source)});
    return sources;
  }
  for (const std::string& name : folders) {
    MUSTER_ASSIGN_OR_RETURN(auto source,
                            ImageFolderSource(base::JoinPath(folder, name), options.resize));
    sources.push_back({absl::AsciiStrToLower(name), std::move(source)});
  }
  return sources;
}

struct ExampleRange {
  int64_t first;
  int64_t last;  // exclusive
};

absl::Status WriteShard(ExampleSource& source, ExampleRange range, const std::string& path,
                        Compression compression, const ConvertProgress& progress) {
  MUSTER_ASSIGN_OR_RETURN(RecordWriter writer, RecordWriter::Open(path, compression));
  for (int64_t i = range.first; i < range.last; ++i) {
    if (!progress(i, source.size())) return absl::CancelledError("stopped");
    MUSTER_ASSIGN_OR_RETURN(const std::string example, source.Example(i));
    MUSTER_RETURN_IF_ERROR(writer.Write(example));
  }
  return writer.Close();
}

// Returns InvalidArgument if an option is for another kind of source than `from`.
absl::Status CheckApplicable(const std::string& from, const SourceOptions& options, bool is_table,
                             bool is_images) {
  const CsvColumns& columns = options.columns;
  const char* table = !columns.label.empty()  ? "--label"
                      : !columns.keep.empty() ? "--columns"
                      : !columns.drop.empty() ? "--drop"
                                              : nullptr;
  if (table != nullptr && !is_table) {
    return absl::InvalidArgumentError(
        absl::StrCat(table, " is for .csv files, which ", from, " is not"));
  }
  if (options.resize.has_value() && !is_images) {
    return absl::InvalidArgumentError(
        absl::StrCat("--resize is for folders of JPEG and PNG images, which ", from, " is not"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FeatureScale>> ExampleSource::ComputeScales(
    const std::vector<int64_t>* /*indices*/) {
  return absl::InvalidArgumentError("--normalize is for .csv files");
}

absl::Status ExampleSource::UseScales(const std::vector<FeatureScale>& /*scales*/) {
  return absl::InvalidArgumentError("--normalize is for .csv files");
}

absl::StatusOr<std::vector<SplitSource>> FindSources(const std::string& from,
                                                     const SourceOptions& options) {
  std::error_code error;
  if (!fs::exists(from, error)) return absl::NotFoundError(absl::StrCat(from, ": does not exist"));
  std::vector<SplitSource> sources;
  if (!fs::is_directory(from, error)) {
    if (!absl::EndsWithIgnoreCase(from, ".csv")) {
      return absl::InvalidArgumentError(
          absl::StrCat(from, ": expected a .csv file, a folder of IDX files, or a folder with a ",
                       "folder of images for each class"));
    }
    MUSTER_RETURN_IF_ERROR(CheckApplicable(from, options, /*is_table=*/true, /*is_images=*/false));
    MUSTER_ASSIGN_OR_RETURN(auto source, CsvSource(from, options.columns));
    sources.push_back({options.split, std::move(source)});
    return sources;
  }
  MUSTER_ASSIGN_OR_RETURN(sources, IdxSources(from));
  MUSTER_RETURN_IF_ERROR(
      CheckApplicable(from, options, /*is_table=*/false, /*is_images=*/sources.empty()));
  if (!sources.empty()) return sources;
  MUSTER_ASSIGN_OR_RETURN(sources, ImageSources(from, options));
  if (!sources.empty()) return sources;
  return absl::InvalidArgumentError(
      absl::StrCat(from, ": has neither IDX files (train-images-idx3-ubyte, or SPLIT-images.idx) ",
                   "nor a folder of images for each class"));
}

std::vector<std::string> ShardNames(const ShardOptions& options) {
  const char* suffix = options.compression == Compression::kNone   ? ""
                       : options.compression == Compression::kGzip ? ".gz"
                                                                   : ".zlib";
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(options.shards));
  for (int64_t i = 0; i < options.shards; ++i) {
    names.push_back(
        absl::StrFormat("%s-%05d-of-%05d.tfrecord%s", options.split, i, options.shards, suffix));
  }
  return names;
}

bool IsShardOf(absl::string_view name, absl::string_view split) {
  const auto consume_number = [&name] {
    size_t digits = 0;
    while (digits < name.size() && absl::ascii_isdigit(static_cast<unsigned char>(name[digits]))) {
      ++digits;
    }
    name.remove_prefix(digits);
    return digits >= 5;
  };
  return absl::ConsumePrefix(&name, split) && absl::ConsumePrefix(&name, "-") && consume_number() &&
         absl::ConsumePrefix(&name, "-of-") && consume_number() &&
         (name == ".tfrecord" || name == ".tfrecord.gz" || name == ".tfrecord.zlib");
}

absl::Status WriteShards(ExampleSource& source, const ShardOptions& options,
                         const ConvertProgress& progress) {
  if (options.shards < 1 || options.shards > source.size()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", source.size(), " examples of ",
                                                   options.split, " into ", options.shards,
                                                   " shards; choose 1 to ", source.size()));
  }
  std::vector<std::string> written;
  for (const std::string& name : ShardNames(options)) {
    const auto number = static_cast<int64_t>(written.size());
    const std::string path = base::JoinPath(options.folder, name);
    const absl::Status status = WriteShard(
        source,
        {source.size() * number / options.shards, source.size() * (number + 1) / options.shards},
        path, options.compression, progress);
    if (!status.ok()) {
      // Readers would take an incomplete set of shards for the whole data set.
      for (const std::string& done : written) ::unlink(done.c_str());
      return status;
    }
    written.push_back(path);
  }
  return absl::OkStatus();
}

}  // namespace muster::data
