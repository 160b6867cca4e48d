// Parses arbitrary bytes as a tf.train.Example. Protobuf reads the same values from accepted input,
// and the values survive a round trip through ExampleBuilder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "data/tfrecord/example.h"
#include "proto/example.pb.h"

namespace {

using muster::data::ExampleBuilder;
using muster::data::FeatureView;
using muster::data::ListKind;

void Expect(bool condition) {
  if (!condition) std::abort();
}

template <typename T, typename Values, typename Read>
std::vector<T> Same(absl::string_view list, const Values& values, Read read) {
  std::vector<T> ours(static_cast<size_t>(read(list, absl::Span<T>()).value()));
  Expect(read(list, absl::MakeSpan(ours)).value() == static_cast<int64_t>(ours.size()));
  Expect(static_cast<int>(ours.size()) == values.size());
  return ours;
}

void Compare(const FeatureView& view, const muster::tf::FeatureEntry& entry,
             ExampleBuilder& builder) {
  const muster::tf::Feature& feature = entry.value();
  Expect(view.name == entry.key());
  Expect(static_cast<int>(view.kind) == static_cast<int>(feature.kind_case()));
  if (view.kind == ListKind::kFloat) {
    const auto& values = feature.float_list().value();
    const auto ours = Same<float>(view.list, values, muster::data::ReadFloats);
    Expect(ours.empty() || std::memcmp(ours.data(), values.data(), ours.size() * 4) == 0);
    builder.AddFloats(view.name, ours);
  } else if (view.kind == ListKind::kInt64) {
    const auto& values = feature.int64_list().value();
    const auto ours = Same<int64_t>(view.list, values, muster::data::ReadInts);
    for (size_t i = 0; i < ours.size(); ++i) Expect(ours[i] == values[static_cast<int>(i)]);
    builder.AddInts(view.name, ours);
  } else if (view.kind == ListKind::kBytes) {
    const auto& values = feature.bytes_list().value();
    const auto ours = Same<absl::string_view>(view.list, values, muster::data::ReadBytes);
    for (size_t i = 0; i < ours.size(); ++i) Expect(ours[i] == values[static_cast<int>(i)]);
    if (!ours.empty()) builder.AddBytes(view.name, ours[0]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<FeatureView> views;
  const absl::Status status = muster::data::VisitFeatures(text, [&](const FeatureView& feature) {
    views.push_back(feature);
    return muster::data::CountValues(feature).status();
  });
  if (!status.ok()) return 0;
  muster::tf::Example example;
  Expect(example.ParseFromArray(data, static_cast<int>(size)));
  Expect(static_cast<int>(views.size()) == example.features().feature_size());
  ExampleBuilder builder;
  for (size_t i = 0; i < views.size(); ++i) {
    Compare(views[i], example.features().feature(static_cast<int>(i)), builder);
  }
  Expect(example.ParseFromString(builder.Finish()));
  return 0;
}
