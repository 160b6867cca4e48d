// tf.train.Example, read from its wire format without an object per record:
//
//   Example  { Features features = 1 }           Features { map<string, Feature> feature = 1 }
//   Feature  { oneof: BytesList 1, FloatList 2, Int64List 3 }, each { repeated value = 1 }
//
// numbers packed or not.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster::data {

enum class ListKind { kNone, kBytes, kFloat, kInt64 };
// "bytes", "float", "int64", "nothing".
absl::string_view ToString(ListKind kind);

// One feature, as it lies in the record.
struct FeatureView {
  absl::string_view name;
  ListKind kind = ListKind::kNone;
  absl::string_view list;  // the list's message
};

// Calls `visit` for each feature as they are written, until it fails. DataLoss when `example` is
// not an Example; what comes after the mistake is not visited. When a name comes twice, the last
// one counts.
absl::Status VisitFeatures(absl::string_view example,
                           absl::FunctionRef<absl::Status(const FeatureView&)> visit);

// found[i] becomes the feature of names[i]; one that is absent keeps kNone and an empty name.
absl::Status FindFeatures(absl::string_view example, absl::Span<const absl::string_view> names,
                          absl::Span<FeatureView> found);

// The values of a list of that kind: as many as there is room for are stored, and how many there
// are is returned. DataLoss when the list is damaged.
absl::StatusOr<int64_t> ReadFloats(absl::string_view list, absl::Span<float> out);
absl::StatusOr<int64_t> ReadInts(absl::string_view list, absl::Span<int64_t> out);
absl::StatusOr<int64_t> ReadBytes(absl::string_view list, absl::Span<absl::string_view> out);
// How many values a feature has.
absl::StatusOr<int64_t> CountValues(const FeatureView& feature);

// Encodes Examples, the features in the order in which they are added.
class ExampleBuilder {
 public:
  void AddBytes(absl::string_view name, absl::string_view value);
  void AddFloats(absl::string_view name, absl::Span<const float> values);
  void AddInts(absl::string_view name, absl::Span<const int64_t> values);
  // The Example; the next one begins empty.
  std::string Finish();

 private:
  // A feature whose list has `content`, the list's message, as field `field` of Feature.
  void Add(absl::string_view name, int field, absl::string_view content);

  std::string features_;
};

}  // namespace muster::data
