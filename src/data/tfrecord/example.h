// Reads and writes tf.train.Example in its wire format, without an object per record:
//
//   Example  { Features features = 1 }           Features { map<string, Feature> feature = 1 }
//   Feature  { oneof: BytesList 1, FloatList 2, Int64List 3 }, each { repeated value = 1 }
//
// Numbers may be packed or not.
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
// Returns "bytes", "float", "int64" or "nothing".
absl::string_view ToString(ListKind kind);

// One feature; a view into the record.
struct FeatureView {
  absl::string_view name;
  ListKind kind = ListKind::kNone;
  absl::string_view list;  // the encoded list
};

// Calls `visit` for each feature in order, until it fails. Returns DataLoss at the first byte that
// is not part of an Example. If a name occurs twice, the last one counts.
absl::Status VisitFeatures(absl::string_view example,
                           absl::FunctionRef<absl::Status(const FeatureView&)> visit);

// Sets found[i] to the feature names[i], or to kNone with an empty name if it is absent.
absl::Status FindFeatures(absl::string_view example, absl::Span<const absl::string_view> names,
                          absl::Span<FeatureView> found);

// Store as many values of a list as fit into `out`, and return how many the list has. Return
// DataLoss if the list is damaged.
absl::StatusOr<int64_t> ReadFloats(absl::string_view list, absl::Span<float> out);
absl::StatusOr<int64_t> ReadInts(absl::string_view list, absl::Span<int64_t> out);
absl::StatusOr<int64_t> ReadBytes(absl::string_view list, absl::Span<absl::string_view> out);
// Returns the number of values of a feature.
absl::StatusOr<int64_t> CountValues(const FeatureView& feature);

// Encodes Examples. Features keep the order in which they are added.
class ExampleBuilder {
 public:
  void AddBytes(absl::string_view name, absl::string_view value);
  void AddFloats(absl::string_view name, absl::Span<const float> values);
  void AddInts(absl::string_view name, absl::Span<const int64_t> values);
  // Returns the encoded Example and starts a new one.
  std::string Finish();

 private:
  // Adds a feature with the encoded list `content` as field `field` of Feature.
  void Add(absl::string_view name, int field, absl::string_view content);

  std::string features_;
};

}  // namespace muster::data
