// Data sets of tf.train.Examples in TFRecord files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/open.h"
#include "data/record_feature.h"
#include "data/record_file.h"

namespace muster::data {

// The files of a split: config.paths has its path; or config.path is a folder, whose files begin
// with the split's name ("train-00000-of-00004"); or config.path is a file or a glob, which is then
// the split "train" and no other. Sorted. NotFound when there are none.
absl::StatusOr<std::vector<std::string>> RecordFilesOf(const DataConfig& config);

// Random access over all records, in the order of the files. Opening walks over the lengths of the
// records; with on_error: skip it also reads all data once, so that damaged records are left out
// everywhere alike. The check sum of a record's data is checked whenever it is read.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTfRecord(const DataConfig& config);

class TfRecordDataset : public Dataset {
 public:
  TfRecordDataset(RecordColumn input, RecordColumn target)
      : input_(std::move(input)), target_(std::move(target)) {}

  // The records of a file are added until there are `limit` (0: all).
  absl::Status Add(RecordFile file, OnError on_error, int64_t limit);
  // When all files are there. Without `classes`, int64 targets are read to find the largest.
  absl::Status Finish(int64_t classes, int64_t vocabulary);

  int64_t size() const override { return static_cast<int64_t>(offsets_.size()); }
  Feature inputs() const override { return input_.feature(); }
  Feature targets() const override { return target_.feature(); }
  int64_t classes() const override { return classes_; }
  int64_t vocabulary() const override { return vocabulary_; }
  std::vector<std::string> notes() const override { return notes_; }
  absl::Status Read(absl::Span<const int64_t> indices, Batch& out) const override;

 private:
  struct Part {
    RecordFile file;
    int64_t first = 0;  // of its examples
  };

  const Part& PartOf(int64_t index) const;
  absl::Status ReadExample(int64_t index, void* input, void* target) const;
  absl::Status CountClasses();
  absl::Status CheckNumbers(const Column& column, int64_t limit, const RecordColumn& feature,
                            absl::Span<const int64_t> indices) const;
  // `status` with the place of an example.
  absl::Status At(int64_t index, const absl::Status& status) const;

  RecordColumn input_;
  RecordColumn target_;
  std::vector<Part> parts_;       // those that have examples
  std::vector<int64_t> offsets_;  // of each example in its file
  std::vector<std::string> notes_;
  int64_t classes_ = 0;
  int64_t vocabulary_ = 0;
};

}  // namespace muster::data
