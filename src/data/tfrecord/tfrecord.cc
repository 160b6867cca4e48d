#include "data/tfrecord/tfrecord.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"

namespace muster::data {
namespace {

constexpr int64_t kMaxClasses = std::numeric_limits<int32_t>::max();
constexpr char kDefaultTarget[] = "label";

bool IsFolder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// "train-00000-of-00004" and "train.tfrecord" belong to the split "train"; "trainer.txt" does not.
bool IsOfSplit(const std::string& name, const std::string& split) {
  return absl::StartsWith(name, split) &&
         (name.size() == split.size() ||
          !absl::ascii_isalnum(static_cast<unsigned char>(name[split.size()]))) &&
         !absl::StrContains(name, ".partial-");
}

absl::StatusOr<std::vector<std::string>> FilesOfFolder(const std::string& folder,
                                                       const std::string& split) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (IsOfSplit(name, split)) files.push_back(base::JoinPath(folder, name));
  }
  if (error) return absl::ErrnoToStatus(error.value(), folder);
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat(
        folder, " has no file of the split '", split, "', such as ", split,
        "-00000-of-00001.tfrecord; if the files have other names, write 'path: {", split, ": ",
        base::JoinPath(folder, absl::StrCat(split, "-*")), "}' or the like"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::Status CheckSection(const DataConfig& config) {
  if (config.record_features.empty()) {
    return absl::InvalidArgumentError(
        "'format: tfrecord' needs 'features', such as {image: {type: uint8, shape: [28, 28]}, "
        "label: int64}; `muster data inspect` shows those of the files");
  }
  if (!config.on_error.empty() && config.on_error != "fail" && config.on_error != "skip") {
    return absl::InvalidArgumentError("'on_error' of data must be fail or skip");
  }
  if (!config.compression.empty() && !ParseCompression(config.compression)) {
    return absl::InvalidArgumentError("'compression' of data must be none, gzip or zlib");
  }
  if (config.record_features.size() == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'features' of data names ",
                                                 config.record_features.size(),
                                                 "; name two: the model's input and the target"));
}

absl::StatusOr<std::shared_ptr<TfRecordDataset>> MakeDataset(const DataConfig& config) {
  const std::string target = config.target.empty() ? kDefaultTarget : config.target;
  std::vector<std::string> names;
  names.reserve(config.record_features.size());
  for (const auto& [name, feature] : config.record_features) names.push_back(name);
  if (config.record_features.count(target) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'features' of data has no '", target, "'", base::DidYouMean(target, names),
                     "; set 'target' to the feature to learn: ", absl::StrJoin(names, " or ")));
  }
  const std::string input = names[0] == target ? names[1] : names[0];
  using Role = RecordColumn::Role;
  MUSTER_ASSIGN_OR_RETURN(
      auto inputs, RecordColumn::Make(input, config.record_features.at(input), Role::kInput));
  MUSTER_ASSIGN_OR_RETURN(
      auto targets, RecordColumn::Make(target, config.record_features.at(target), Role::kTarget));
  return std::make_shared<TfRecordDataset>(std::move(inputs), std::move(targets));
}

absl::Status WithAdvice(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(
      status.message(), "; download the file again, or skip damage with 'on_error: skip'"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RecordFilesOf(const DataConfig& config) {
  std::string path = config.path;
  if (!config.paths.empty()) {
    const auto found = config.paths.find(config.split);
    if (found == config.paths.end()) {
      return absl::NotFoundError(absl::StrCat("'path' of data has no split '", config.split,
                                              "'; add '", config.split, ": …' to it"));
    }
    path = found->second;
  }
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "'format: tfrecord' needs 'path': a folder, a glob, or a map from splits to globs");
  }
  if (IsFolder(path)) return FilesOfFolder(path, config.split);
  if (config.paths.empty() && config.split != "train") {
    return absl::NotFoundError(absl::StrCat(
        "there is no data for the split '", config.split, "': 'path' of data belongs to train; ",
        "write 'path: {train: ", path, ", ", config.split, ": …}'"));
  }
  return MatchFiles(path);
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenTfRecord(const DataConfig& config) {
  MUSTER_RETURN_IF_ERROR(CheckSection(config));
  MUSTER_ASSIGN_OR_RETURN(auto dataset, MakeDataset(config));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> files, RecordFilesOf(config));
  const OnError on_error = config.on_error == "skip" ? OnError::kSkip : OnError::kFail;
  RecordFile::Options options;
  options.compression = ParseCompression(config.compression);
  // All files share `memory`. Once it is used up, further compressed files are decompressed to
  // disk.
  int64_t memory = config.memory;
  for (const std::string& path : files) {
    if (config.examples > 0 && dataset->size() >= config.examples) break;
    options.memory = std::min(RecordFile::Options().memory, memory);
    MUSTER_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(path, options));
    memory -= file.bytes_in_memory();
    MUSTER_RETURN_IF_ERROR(dataset->Add(std::move(file), on_error, config.examples));
  }
  if (dataset->size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.front(), files.size() > 1 ? " and the files after it hold" : " holds",
                     " no example"));
  }
  MUSTER_RETURN_IF_ERROR(dataset->Finish(config.classes, config.vocabulary));
  return dataset;
}

absl::Status TfRecordDataset::Add(RecordFile file, OnError on_error, int64_t limit) {
  using Check = RecordReader::Check;
  const int64_t first = size();
  // With kFail, lengths suffice: ReadExample() checks the data, so that opening a large file does
  // not read all of it. With kSkip, damaged records must not count as examples.
  RecordReader reader(file, on_error, on_error == OnError::kSkip ? Check::kAll : Check::kLengths);
  while (limit == 0 || size() < limit) {
    const auto record = reader.Next();
    if (!record.ok()) return WithAdvice(record.status());
    if (!record->has_value()) break;
    offsets_.push_back((*record)->offset);
  }
  if (!reader.problems().empty()) {
    notes_.push_back(absl::StrCat(
        file.path(), ": ", reader.damaged_records(), " damaged records and ",
        reader.bytes_left_out(),
        " bytes at the end were skipped (on_error: skip); the first: ", reader.problems().front()));
  }
  if (size() > first) parts_.push_back({std::move(file), first});
  return absl::OkStatus();
}

absl::Status TfRecordDataset::Finish(int64_t classes, int64_t vocabulary) {
  classes_ = targets().dtype == base::DType::kInt64 ? classes : 0;
  vocabulary_ = inputs().dtype == base::DType::kInt64 ? vocabulary : 0;
  // Reading the first record reveals mistakes in the section early.
  Batch batch;
  MUSTER_RETURN_IF_ERROR(Read({0}, batch));
  if (targets().dtype != base::DType::kInt64 || classes_ > 0) return absl::OkStatus();
  return CountClasses();
}

absl::Status TfRecordDataset::CountClasses() {
  const absl::string_view name = target_.name();
  std::vector<int64_t> values(static_cast<size_t>(base::ElementsOf(targets().shape)));
  int64_t largest = 0;
  for (int64_t i = 0; i < size(); ++i) {
    const auto data = CheckRecord(PartOf(i).file, offsets_[static_cast<size_t>(i)]);
    if (!data.ok()) return WithAdvice(At(i, data.status()));
    FeatureView found;
    absl::Status status = FindFeatures(*data, {name}, absl::MakeSpan(&found, 1));
    if (status.ok()) status = target_.Read(found, values.data());
    if (!status.ok()) return At(i, status);
    largest = std::max(largest, *std::max_element(values.begin(), values.end()));
  }
  if (largest >= kMaxClasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature '", name, "' has the value ", largest,
        ", which is not a class; set 'target' to another feature, or declare it as float"));
  }
  classes_ = largest + 1;
  return absl::OkStatus();
}

const TfRecordDataset::Part& TfRecordDataset::PartOf(int64_t index) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), index,
                       [](int64_t value, const Part& part) { return value < part.first; });
  return *std::prev(after);
}

absl::Status TfRecordDataset::At(int64_t index, const absl::Status& status) const {
  const RecordFile& file = PartOf(index).file;
  const int64_t offset = offsets_[static_cast<size_t>(index)];
  // Reads from the start: the number of a record also counts skipped ones.
  RecordReader reader(file, OnError::kSkip, RecordReader::Check::kLengths);
  int64_t number = 0;
  for (auto record = reader.Next(); record.ok() && record->has_value(); record = reader.Next()) {
    number = (*record)->number;
    if ((*record)->offset == offset) break;
  }
  return base::Annotate(status, file.Place(number, offset));
}

absl::Status TfRecordDataset::ReadExample(int64_t index, void* input, void* target) const {
  const RecordFile& file = PartOf(index).file;
  const auto data = CheckRecord(file, offsets_[static_cast<size_t>(index)]);
  if (!data.ok()) return WithAdvice(At(index, data.status()));
  const absl::string_view names[] = {input_.name(), target_.name()};
  FeatureView found[2];
  absl::Status status = FindFeatures(*data, names, absl::MakeSpan(found));
  if (status.ok()) status = input_.Read(found[0], input);
  if (status.ok()) status = target_.Read(found[1], target);
  return status.ok() ? status : At(index, status);
}

// Checks that ids are below `limit`, the size of the model's table; 0 means no limit.
absl::Status TfRecordDataset::CheckNumbers(const Column& column, int64_t limit,
                                           const RecordColumn& feature,
                                           absl::Span<const int64_t> indices) const {
  if (limit == 0 || column.dtype != base::DType::kInt64) return absl::OkStatus();
  const auto* values = column.as<int64_t>();
  const int64_t count = base::ElementsOf(column.shape);
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] >= 0 && values[i] < limit) continue;
    const int64_t index =
        indices[static_cast<size_t>(i / base::ElementsOf(feature.feature().shape))];
    return At(index, absl::InvalidArgumentError(absl::StrCat(
                         "feature '", feature.name(), "' is ", values[i],
                         "; it must be a whole number from 0 to ", limit - 1, " (by '",
                         &feature == &target_ ? "classes" : "vocabulary", "' of data)")));
  }
  return absl::OkStatus();
}

absl::Status TfRecordDataset::Read(absl::Span<const int64_t> indices, Batch& out) const {
  MUSTER_RETURN_IF_ERROR(Prepare(indices, out));
  char* input = out.inputs.as<char>();
  char* target = out.targets.as<char>();
  for (const int64_t index : indices) {
    MUSTER_RETURN_IF_ERROR(ReadExample(index, input, target));
    input += input_.feature().bytes();
    target += target_.feature().bytes();
  }
  MUSTER_RETURN_IF_ERROR(CheckNumbers(out.targets, classes_, target_, indices));
  return CheckNumbers(out.inputs, vocabulary_, input_, indices);
}

}  // namespace muster::data
