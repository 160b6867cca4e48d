// Data sets of other formats, written as TFRecord shards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/record_file.h"

namespace muster::data {

// Something that can be written as tf.train.Examples. Used by one thread at a time.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  virtual int64_t size() const = 0;
  // Encoded. Errors name the file and the place in it.
  virtual absl::StatusOr<std::string> Example(int64_t index) = 0;
  // What the targets 0, 1, … mean; empty when they are numbers anyway.
  virtual std::vector<std::string> class_names() const { return {}; }
  // The labels, sorted, that are none of these classes, even if they look like numbers; at most
  // some thousands.
  virtual std::vector<std::string> LabelsBeyond(const std::vector<std::string>& /*classes*/) const {
    return {};
  }
  // Numbers the labels by their place in `classes`. REQUIRES: LabelsBeyond(classes) is empty.
  virtual void UseClasses(const std::vector<std::string>& /*classes*/) {}
  // The `features` of a job that reads the result; after all examples were asked for.
  virtual std::string features() const = 0;
  // What a user should know of the result, or "".
  virtual std::string note() const { return ""; }
};

// A split and its examples.
struct SplitSource {
  std::string split;
  std::unique_ptr<ExampleSource> examples;
};

struct SourceOptions {
  std::string split = "train";  // of what has none of its own
  std::string label;            // the column that is learnt; "": by its name, else the last
};

// What `from` is: a folder of IDX files (MNIST's, or SPLIT-images.idx with SPLIT-labels.idx), a CSV
// file, or a folder with a folder of JPEG and PNG images for each class, itself in folders named
// as splits or not. InvalidArgument when it is none of these.
absl::StatusOr<std::vector<SplitSource>> FindSources(const std::string& from,
                                                     const SourceOptions& options);

// `images` and `labels` as IdxFile::Open takes them. Features: image, label.
absl::StatusOr<std::unique_ptr<ExampleSource>> IdxSource(const std::string& images,
                                                         const std::string& labels);
// Features: features (all columns of numbers but the label's), label.
absl::StatusOr<std::unique_ptr<ExampleSource>> CsvSource(const std::string& path,
                                                         const std::string& label);
// Features: image (as the file is), label, class (its name), height, width.
absl::StatusOr<std::unique_ptr<ExampleSource>> ImageFolderSource(const std::string& folder);

struct SplitShare {
  std::string split;
  double fraction = 0;
};

// Divides the examples of one source at random, but the same way each time; within a split they
// keep their order. The fractions are positive and have the sum 1. InvalidArgument when a split
// would be empty.
absl::StatusOr<std::vector<SplitSource>> Divide(std::unique_ptr<ExampleSource> source,
                                                const std::vector<SplitShare>& shares);

struct ShardOptions {
  std::string folder;
  std::string split;
  int64_t shards = 1;
  Compression compression = Compression::kNone;
};

// The names of the shards: SPLIT-00000-of-00004.tfrecord, and .gz or .zlib when they are
// compressed.
std::vector<std::string> ShardNames(const ShardOptions& options);
// Whether ShardNames gives a split a file of that name, for some number of shards.
bool IsShardOf(absl::string_view name, absl::string_view split);

// Returns false to stop.
using ConvertProgress = std::function<bool(int64_t done, int64_t total)>;

// Writes all examples in their order, as many to each shard as to any other. A shard appears under
// its name when it is whole; when one cannot be written, none is left. Cancelled when `progress`
// asks to stop.
absl::Status WriteShards(ExampleSource& source, const ShardOptions& options,
                         const ConvertProgress& progress);

}  // namespace muster::data
