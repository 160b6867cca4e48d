// One feature of tf.train.Examples as a column of a batch.
#pragma once

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/config.h"
#include "data/input/batch.h"
#include "data/tfrecord/example.h"

namespace muster::data {

// Converts the values of a feature:
//
//   uint8       one text of raw bytes       -> float32 from 0 to 1
//   float       numbers                     -> float32
//   int64       whole numbers               -> int64
//   jpeg, png   one image, of either format -> float32 from 0 to 1, channels first
//
// A shape [height, width] of bytes becomes [1, height, width]. A shape whose third and last
// dimension is 1 or 3 is [height, width, channels], as in TensorFlow, and becomes [channels,
// height, width]. A single float, and a single number as an input, have the shape [1]. Immutable,
// hence thread-safe.
class RecordColumn {
 public:
  enum class Role { kInput, kTarget };

  // Returns InvalidArgument for an invalid declaration.
  static absl::StatusOr<RecordColumn> Make(const std::string& name, const RecordFeature& declared,
                                           Role role);

  const std::string& name() const { return name_; }
  const Feature& feature() const { return feature_; }

  // Writes the values of one example to `out`. `found` has no name if the example lacks this
  // feature. Errors name the feature and the remedy. REQUIRES: `out` has room for feature().
  absl::Status Read(const FeatureView& found, void* out) const;

 private:
  enum class Type { kBytes, kFloat, kInt64, kImage };

  RecordColumn(std::string name, const RecordFeature& declared, Type type);
  absl::Status Complete(Role role);
  absl::Status CompleteImage();
  // Converts bytes to values, and from channels last to channels first.
  void ToChannelsFirst(absl::Span<const uint8_t> pixels, float* out) const;
  absl::Status CheckKind(const FeatureView& found) const;
  absl::Status CheckCount(int64_t count, absl::string_view what) const;
  absl::Status ReadRaw(absl::string_view bytes, float* out) const;
  absl::Status ReadImage(absl::string_view bytes, float* out) const;
  absl::Status Mistake(absl::string_view text) const;

  std::string name_;
  std::string declared_;  // the type in the job file
  Type type_;
  base::Shape shape_;  // in the job file
  int64_t elements_ = 0;
  bool channels_last_ = false;
  Feature feature_;
  std::array<float, 256> table_;  // the value of each byte
};

}  // namespace muster::data
