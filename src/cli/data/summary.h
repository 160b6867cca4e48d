// Summarizes the examples of TFRecord files: their features, and an image drawn in characters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "data/tfrecord/example.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// One feature, over all inspected examples.
struct FeatureSummary {
  data::ListKind kind = data::ListKind::kNone;  // in the first example with values
  bool mixed = false;                           // other examples have another kind
  int64_t examples = 0;                         // with this feature
  int64_t min_values = 0;
  int64_t max_values = 0;
  int64_t min_bytes = 0;  // of a value, if the kind is bytes
  int64_t max_bytes = 0;
  double min = 0;  // of numbers
  double max = 0;
  bool has_number = false;
  std::string first;              // the first text
  nlohmann::ordered_json sample;  // some values of the first example; only printable texts
};

class ExampleSummary {
 public:
  // Returns DataLoss if the record is not an Example.
  absl::Status Add(absl::string_view example);

  int64_t examples() const { return examples_; }
  const std::map<std::string, FeatureSummary>& features() const { return features_; }

  // Returns the type of a feature: "bytes", "int64 or float".
  static std::string TypeOf(const FeatureSummary& feature);
  // Returns the number of values: "1 text of 784 bytes", "3 to 5".
  static std::string ValuesOf(const FeatureSummary& feature);
  // Returns a sample: "png, 28 x 28", "7", "'cat'".
  static std::string SampleOf(const FeatureSummary& feature);
  // Returns the declaration for a job, such as {type: uint8, shape: [28, 28]}; "" if it cannot be
  // inferred.
  static std::string DeclarationOf(const FeatureSummary& feature);

  // Returns `features` for a job, or "" if the input and the target cannot be inferred.
  std::string JobFeatures() const;

 private:
  absl::Status AddFeature(const data::FeatureView& view);

  int64_t examples_ = 0;
  std::map<std::string, FeatureSummary> features_;
};

// Draws an image in characters, at most `columns` wide: a JPEG, a PNG, or the raw bytes of a square
// (gray, or three bytes per pixel). Returns nullopt for other bytes.
std::optional<std::vector<std::string>> DrawImage(absl::string_view bytes, int columns);

}  // namespace muster::cli
