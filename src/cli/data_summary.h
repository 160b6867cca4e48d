// What the examples of TFRecord files look like: their features, and an image drawn in characters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "data/example.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// One feature, over all examples that were looked at.
struct FeatureSummary {
  data::ListKind kind = data::ListKind::kNone;  // of the first that has one
  bool mixed = false;                           // other examples have another kind
  int64_t examples = 0;                         // that have it
  int64_t min_values = 0;
  int64_t max_values = 0;
  int64_t min_bytes = 0;  // of a text, when the kind is bytes
  int64_t max_bytes = 0;
  double min = 0;  // of numbers
  double max = 0;
  bool has_number = false;
  std::string first;              // the first text
  nlohmann::ordered_json sample;  // values of the first example, a few; texts only when printable
};

class ExampleSummary {
 public:
  // DataLoss when the record is not an Example.
  absl::Status Add(absl::string_view example);

  int64_t examples() const { return examples_; }
  const std::map<std::string, FeatureSummary>& features() const { return features_; }

  // "bytes", "int64 or float": what a feature holds.
  static std::string TypeOf(const FeatureSummary& feature);
  // "1 text of 784 bytes", "3 to 5".
  static std::string ValuesOf(const FeatureSummary& feature);
  // "png, 28 x 28", "7", "'cat'".
  static std::string SampleOf(const FeatureSummary& feature);
  // How a job would declare it, such as {type: uint8, shape: [28, 28]}; "" when that cannot be
  // told.
  static std::string DeclarationOf(const FeatureSummary& feature);

  // `features` for a job, when one input and a target can be told apart; else "".
  std::string JobFeatures() const;

 private:
  absl::Status AddFeature(const data::FeatureView& view);

  int64_t examples_ = 0;
  std::map<std::string, FeatureSummary> features_;
};

// An image in characters, at most `columns` wide: a JPEG, a PNG, or raw bytes of a square (grey, or
// three bytes a pixel). nullopt when the bytes are none of these.
std::optional<std::vector<std::string>> DrawImage(absl::string_view bytes, int columns);

}  // namespace muster::cli
