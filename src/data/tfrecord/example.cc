// Reads and writes the protobuf wire format of tf.train.Example. A FeatureView refers to bytes of
// the record, so features that are not needed cost no copy:
//
//    Example  1: Features
//    Features 1: entry of a map, repeated
//    entry    1: name   2: Feature
//    Feature  1: BytesList | 2: FloatList | 3: Int64List
//    list     1: values, packed into one field or one per field
#include "data/tfrecord/example.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes/wire_reader.h"
#include "base/status_macros.h"

namespace muster::data {
namespace {

// Rejects a list that is split in two, and a second list for the same feature. The format allows
// both, but no writer produces them.
bool ParseFeature(absl::string_view bytes, FeatureView& feature) {
  return base::VisitFields(bytes, [&](base::WireReader& wire, uint32_t field, uint32_t type) {
    if (type != base::kLengthDelimited || field > 3) return wire.Skip(type);
    if (feature.kind != ListKind::kNone) return false;
    feature.kind = static_cast<ListKind>(field);
    return wire.Bytes(feature.list);
  });
}

bool ParseEntry(absl::string_view bytes, FeatureView& feature) {
  bool has_value = false;
  return base::VisitFields(bytes, [&](base::WireReader& wire, uint32_t field, uint32_t type) {
    if (type != base::kLengthDelimited || field > 2) return wire.Skip(type);
    if (field == 1) return wire.Bytes(feature.name);
    absl::string_view value;
    return !std::exchange(has_value, true) && wire.Bytes(value) && ParseFeature(value, feature);
  });
}

// Calls `visit` for each length-delimited field 1 of a message, until it returns an error.
template <typename Visit>
absl::Status VisitMessages(absl::string_view message, Visit visit) {
  absl::Status status;
  const bool whole =
      base::VisitFields(message, [&](base::WireReader& wire, uint32_t field, uint32_t type) {
        if (field != 1 || type != base::kLengthDelimited) return wire.Skip(type);
        absl::string_view bytes;
        if (!wire.Bytes(bytes)) return false;
        status = visit(bytes);
        return status.ok();
      });
  if (whole || !status.ok()) return status;
  return absl::DataLossError("is not a tf.train.Example");
}

absl::Status DamagedList() { return absl::DataLossError("its list of values is damaged"); }

// Stores the value if there is room for it, and counts it.
// Values beyond `out` are only counted, so a caller detects a list that is too long.
template <typename T>
void Append(T value, absl::Span<T> out, int64_t& count) {
  if (count < static_cast<int64_t>(out.size())) out[static_cast<size_t>(count)] = value;
  ++count;
}

bool UnpackFloats(absl::string_view packed, absl::Span<float> out, int64_t& count) {
  if (packed.size() % sizeof(float) != 0) return false;
  const size_t stored = std::min(static_cast<size_t>(count), out.size());
  const size_t fits = std::min(packed.size() / sizeof(float), out.size() - stored);
  if (fits > 0) std::memcpy(out.data() + stored, packed.data(), fits * sizeof(float));
  count += static_cast<int64_t>(packed.size() / sizeof(float));
  return true;
}

bool UnpackInts(absl::string_view packed, absl::Span<int64_t> out, int64_t& count) {
  base::WireReader wire(packed);
  uint64_t value = 0;
  while (!wire.done()) {
    if (!wire.Varint(value)) return false;
    Append(static_cast<int64_t>(value), out, count);
  }
  return true;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendField(int field, absl::string_view content, std::string& out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | base::kLengthDelimited, out);
  AppendVarint(content.size(), out);
  out.append(content.data(), content.size());
}

}  // namespace

absl::string_view ToString(ListKind kind) {
  switch (kind) {
    case ListKind::kBytes:
      return "bytes";
    case ListKind::kFloat:
      return "float";
    case ListKind::kInt64:
      return "int64";
    case ListKind::kNone:
      break;
  }
  return "nothing";
}

absl::Status VisitFeatures(absl::string_view example,
                           absl::FunctionRef<absl::Status(const FeatureView&)> visit) {
  return VisitMessages(example, [visit](absl::string_view features) {
    return VisitMessages(features, [visit](absl::string_view entry) {
      FeatureView feature;
      if (!ParseEntry(entry, feature)) return absl::DataLossError("is not a tf.train.Example");
      return visit(feature);
    });
  });
}

absl::Status FindFeatures(absl::string_view example, absl::Span<const absl::string_view> names,
                          absl::Span<FeatureView> found) {
  std::fill(found.begin(), found.end(), FeatureView());
  return VisitFeatures(example, [&](const FeatureView& feature) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (feature.name == names[i]) found[i] = feature;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> ReadFloats(absl::string_view list, absl::Span<float> out) {
  int64_t count = 0;
  const bool whole =
      base::VisitFields(list, [&](base::WireReader& wire, uint32_t field, uint32_t type) {
        if (field == 1 && type == base::kLengthDelimited) {
          absl::string_view packed;
          return wire.Bytes(packed) && UnpackFloats(packed, out, count);
        }
        if (field != 1 || type != base::kFixed32) return wire.Skip(type);
        float value = 0;
        if (!wire.Float(value)) return false;
        Append(value, out, count);
        return true;
      });
  if (!whole) return DamagedList();
  return count;
}

absl::StatusOr<int64_t> ReadInts(absl::string_view list, absl::Span<int64_t> out) {
  int64_t count = 0;
  const bool whole =
      base::VisitFields(list, [&](base::WireReader& wire, uint32_t field, uint32_t type) {
        if (field == 1 && type == base::kLengthDelimited) {
          absl::string_view packed;
          return wire.Bytes(packed) && UnpackInts(packed, out, count);
        }
        if (field != 1 || type != base::kVarint) return wire.Skip(type);
        uint64_t value = 0;
        if (!wire.Varint(value)) return false;
        Append(static_cast<int64_t>(value), out, count);
        return true;
      });
  if (!whole) return DamagedList();
  return count;
}

absl::StatusOr<int64_t> ReadBytes(absl::string_view list, absl::Span<absl::string_view> out) {
  int64_t count = 0;
  const bool whole =
      base::VisitFields(list, [&](base::WireReader& wire, uint32_t field, uint32_t type) {
        if (field != 1 || type != base::kLengthDelimited) return wire.Skip(type);
        absl::string_view value;
        if (!wire.Bytes(value)) return false;
        Append(value, out, count);
        return true;
      });
  if (!whole) return DamagedList();
  return count;
}

absl::StatusOr<int64_t> CountValues(const FeatureView& feature) {
  switch (feature.kind) {
    case ListKind::kBytes:
      return ReadBytes(feature.list, {});
    case ListKind::kFloat:
      return ReadFloats(feature.list, {});
    case ListKind::kInt64:
      return ReadInts(feature.list, {});
    case ListKind::kNone:
      break;
  }
  return 0;
}

void ExampleBuilder::Add(absl::string_view name, int field, absl::string_view content) {
  std::string feature;
  AppendField(field, content, feature);
  std::string entry;
  AppendField(1, name, entry);
  AppendField(2, feature, entry);
  AppendField(1, entry, features_);
}

void ExampleBuilder::AddBytes(absl::string_view name, absl::string_view value) {
  std::string list;
  AppendField(1, value, list);
  Add(name, 1, list);
}

void ExampleBuilder::AddFloats(absl::string_view name, absl::Span<const float> values) {
  std::string list;
  AppendField(1, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)},
              list);
  Add(name, 2, values.empty() ? absl::string_view() : list);
}

void ExampleBuilder::AddInts(absl::string_view name, absl::Span<const int64_t> values) {
  std::string packed;
  for (const int64_t value : values) AppendVarint(static_cast<uint64_t>(value), packed);
  std::string list;
  AppendField(1, packed, list);
  Add(name, 3, values.empty() ? absl::string_view() : list);
}

std::string ExampleBuilder::Finish() {
  std::string example;
  AppendField(1, features_, example);
  features_.clear();
  return example;
}

}  // namespace muster::data
