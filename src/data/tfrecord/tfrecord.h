// Data sets of tf.train.Examples in TFRecord files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/open.h"
#include "data/tfrecord/record_feature.h"
#include "data/tfrecord/record_file.h"

namespace muster::data {

// Returns the files of a split, sorted: those of config.paths; or, if config.path is a folder,
// those whose names begin with the split ("train-00000-of-00004"); or, for the split "train" only,
// config.path as a file or glob. Returns NotFound if there are none.
absl::StatusOr<std::vector<std::string>> RecordFilesOf(const DataConfig& config);

// Opens all records for random access, in the order of the files. Opening reads the lengths of the
// records; with on_error: skip it also reads all data once, so that every task skips the same
// damaged records. Every read checks the checksum of the record's data.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTfRecord(const DataConfig& config);

class TfRecordDataset : public Dataset {
 public:
  TfRecordDataset(RecordColumn input, RecordColumn target)
      : input_(std::move(input)), target_(std::move(target)) {}

  // Adds the records of a file until there are `limit` in total (0: all).
  absl::Status Add(RecordFile file, OnError on_error, int64_t limit);
  // Completes the data set after the last Add(). If `classes` is 0, reads int64 targets to find the
  // largest.
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
    int64_t first = 0;  // index of its first example
  };

  const Part& PartOf(int64_t index) const;
  absl::Status ReadExample(int64_t index, void* input, void* target) const;
  absl::Status CountClasses();
  absl::Status CheckNumbers(const Column& column, int64_t limit, const RecordColumn& feature,
                            absl::Span<const int64_t> indices) const;
  // Returns `status` with the location of an example.
  absl::Status At(int64_t index, const absl::Status& status) const;

  RecordColumn input_;
  RecordColumn target_;
  std::vector<Part> parts_;       // files with at least one example
  std::vector<int64_t> offsets_;  // of each example in its file
  std::vector<std::string> notes_;
  int64_t classes_ = 0;
  int64_t vocabulary_ = 0;
};

}  // namespace muster::data
