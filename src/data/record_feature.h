// One feature of tf.train.Examples as a column of a batch.
#pragma once

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/batch.h"
#include "data/config.h"
#include "data/example.h"

namespace muster::data {

// How the values become those of a column:
//
//   uint8       one text of raw bytes       -> float32 from 0 to 1
//   float       numbers                     -> float32
//   int64       whole numbers               -> int64
//   jpeg, png   one image, of either format -> float32 from 0 to 1, channels first
//
// What images are made of, [height, width], gets a channel: [1, height, width]; bytes of a shape
// whose third and last size is 1 or 3 are [height, width, channels], as TensorFlow has it, and
// become [channels, height, width]. A single fraction has the shape [1], and so has a single number
// as an input. Thread-safe.
class RecordColumn {
 public:
  enum class Role { kInput, kTarget };

  // InvalidArgument for what makes no sense.
  static absl::StatusOr<RecordColumn> Make(const std::string& name, const RecordFeature& declared,
                                           Role role);

  const std::string& name() const { return name_; }
  const Feature& feature() const { return feature_; }

  // Puts the values of one example at `out`, where there is room for them. `found` without a name
  // is an example without this feature. The error names the feature and says what to do.
  absl::Status Read(const FeatureView& found, void* out) const;

 private:
  enum class Type { kBytes, kFloat, kInt64, kImage };

  RecordColumn(std::string name, const RecordFeature& declared, Type type);
  absl::Status Complete(Role role);
  absl::Status CompleteImage();
  // Bytes, whose last of three dimensions is the channels, as values, channels first.
  void Unfold(absl::Span<const uint8_t> pixels, float* out) const;
  absl::Status CheckKind(const FeatureView& found) const;
  absl::Status CheckCount(int64_t count, absl::string_view what) const;
  absl::Status ReadRaw(absl::string_view bytes, float* out) const;
  absl::Status ReadImage(absl::string_view bytes, float* out) const;
  absl::Status Mistake(absl::string_view text) const;

  std::string name_;
  std::string declared_;  // the type as the job has it
  Type type_;
  Shape shape_;  // as the job has it
  int64_t elements_ = 0;
  bool channels_last_ = false;
  Feature feature_;
  std::array<float, 256> table_;  // what a byte means
};

}  // namespace muster::data
