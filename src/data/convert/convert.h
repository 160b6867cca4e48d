// Converts data sets of other formats to TFRecord shards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/resize.h"
#include "data/tfrecord/record_file.h"

namespace muster::data {

// How a feature is normalized: (value - mean) / deviation.
struct FeatureScale {
  std::string column;
  double mean = 0;
  double deviation = 1;  // positive
  bool operator==(const FeatureScale&) const = default;
};

// A source of tf.train.Examples. Not thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  virtual int64_t size() const = 0;
  // Returns the encoded example. Errors name the file and the position in it.
  virtual absl::StatusOr<std::string> Example(int64_t index) = 0;
  // Returns the names of the targets 0, 1, …; empty if the labels are numbers.
  virtual std::vector<std::string> class_names() const { return {}; }
  // Returns the labels, sorted, that are not in `classes`, even if they look like numbers; at most
  // a few thousand.
  virtual std::vector<std::string> LabelsBeyond(const std::vector<std::string>& /*classes*/) const {
    return {};
  }
  // Numbers the labels by their index in `classes`. REQUIRES: LabelsBeyond(classes) is empty.
  virtual void UseClasses(const std::vector<std::string>& /*classes*/) {}
  // Returns the scales that give each feature a mean of 0 and a deviation of 1 over these examples,
  // or all of them if `indices` is null. Returns InvalidArgument if the source cannot be
  // normalized.
  virtual absl::StatusOr<std::vector<FeatureScale>> ComputeScales(
      const std::vector<int64_t>* indices = nullptr);
  // Normalizes the features. Returns InvalidArgument if `scales` are for other features.
  virtual absl::Status UseScales(const std::vector<FeatureScale>& scales);
  // Returns the `features` of a job that reads the result.
  // REQUIRES: Example() was called for all examples.
  virtual std::string features() const = 0;
  // Returns a remark about the result for the user, or "".
  virtual std::string note() const { return ""; }
};

// A split and its examples.
struct SplitSource {
  std::string split;
  std::unique_ptr<ExampleSource> examples;
};

// The columns of a CSV file to use.
struct CsvColumns {
  std::string label;              // the column to learn; "": one named label, else the last
  std::vector<std::string> keep;  // the features, in this order; empty: all but `drop`
  std::vector<std::string> drop;
};

struct SourceOptions {
  std::string split = "train";  // for sources without splits
  CsvColumns columns;
  std::optional<ImageSize> resize;  // of images
};

// Returns the sources at `from`: a folder of IDX files (MNIST's, or SPLIT-images.idx with
// SPLIT-labels.idx), a CSV file, or a folder with one folder of JPEG and PNG images per class,
// optionally within folders named after splits. Returns InvalidArgument for anything else, and for
// options that do not apply.
absl::StatusOr<std::vector<SplitSource>> FindSources(const std::string& from,
                                                     const SourceOptions& options);

// `images` and `labels` are paths for IdxFile::Open(). Features: image, label.
absl::StatusOr<std::unique_ptr<ExampleSource>> IdxSource(const std::string& images,
                                                         const std::string& labels);
// Features: features (the selected columns), label.
absl::StatusOr<std::unique_ptr<ExampleSource>> CsvSource(const std::string& path,
                                                         const CsvColumns& columns);
// Features: image (the content of the file or, resized, a PNG), label, class (its name), height,
// width.
absl::StatusOr<std::unique_ptr<ExampleSource>> ImageFolderSource(
    const std::string& folder, const std::optional<ImageSize>& resize);

struct SplitShare {
  std::string split;
  double fraction = 0;
};

// Divides the examples of one source at random but reproducibly; within a split they keep their
// order. Returns InvalidArgument if a split would be empty.
// REQUIRES: the fractions are positive and their sum is 1.
absl::StatusOr<std::vector<SplitSource>> Divide(std::unique_ptr<ExampleSource> source,
                                                const std::vector<SplitShare>& shares);

struct ShardOptions {
  std::string folder;
  std::string split;
  int64_t shards = 1;
  Compression compression = Compression::kNone;
};

// Returns the names of the shards: SPLIT-00000-of-00004.tfrecord, with .gz or .zlib if compressed.
std::vector<std::string> ShardNames(const ShardOptions& options);
// Returns whether `name` is one of ShardNames() of a split, for any number of shards.
bool IsShardOf(absl::string_view name, absl::string_view split);

// A callback that returns false to stop.
using ConvertProgress = std::function<bool(int64_t done, int64_t total)>;

// Writes all examples in order, divided equally among the shards. A shard gets its name when it is
// complete; if one cannot be written, all are removed. Returns Cancelled if `progress` returns
// false.
absl::Status WriteShards(ExampleSource& source, const ShardOptions& options,
                         const ConvertProgress& progress);

}  // namespace muster::data
