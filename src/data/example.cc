#include "data/example.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "base/wire_reader.h"

namespace muster::data {
namespace {

// Rejects a list that is split in two, and a second list for the same feature. The format allows
// both, but no writer produces them.
bool ParseFeature(absl::string_view bytes, FeatureView& feature) {
  WireReader wire(bytes);
  uint32_t field = 0;
  uint32_t type = 0;
  while (!wire.done()) {
    if (!wire.Tag(field, type)) return false;
    if (type != kLengthDelimited || field > 3) {
      if (!wire.Skip(type)) return false;
      continue;
    }
    const auto kind = static_cast<ListKind>(field);
    if (feature.kind != ListKind::kNone || !wire.Bytes(feature.list)) return false;
    feature.kind = kind;
  }
  return true;
}

bool ParseEntry(absl::string_view bytes, FeatureView& feature) {
  WireReader wire(bytes);
  uint32_t field = 0;
  uint32_t type = 0;
  bool has_value = false;
  while (!wire.done()) {
    if (!wire.Tag(field, type)) return false;
    absl::string_view value;
    if (type != kLengthDelimited || field > 2) {
      if (!wire.Skip(type)) return false;
    } else if (!wire.Bytes(field == 1 ? feature.name : value)) {
      return false;
    } else if (field == 2) {
      if (has_value || !ParseFeature(value, feature)) return false;
      has_value = true;
    }
  }
  return true;
}

// Iterates over the length-delimited fields 1 of a message.
template <typename Visit>
absl::Status VisitMessages(absl::string_view message, Visit visit) {
  WireReader wire(message);
  uint32_t field = 0;
  uint32_t type = 0;
  while (!wire.done()) {
    absl::string_view bytes;
    if (!wire.Tag(field, type)) return absl::DataLossError("is not a tf.train.Example");
    if (field != 1 || type != kLengthDelimited) {
      if (!wire.Skip(type)) return absl::DataLossError("is not a tf.train.Example");
      continue;
    }
    if (!wire.Bytes(bytes)) return absl::DataLossError("is not a tf.train.Example");
    MUSTER_RETURN_IF_ERROR(visit(bytes));
  }
  return absl::OkStatus();
}

absl::Status DamagedList() { return absl::DataLossError("its list of values is damaged"); }

bool UnpackFloats(absl::string_view packed, absl::Span<float> out, int64_t& count) {
  if (packed.size() % sizeof(float) != 0) return false;
  const size_t stored = std::min(static_cast<size_t>(count), out.size());
  const size_t fits = std::min(packed.size() / sizeof(float), out.size() - stored);
  if (fits > 0) std::memcpy(out.data() + stored, packed.data(), fits * sizeof(float));
  count += static_cast<int64_t>(packed.size() / sizeof(float));
  return true;
}

bool UnpackInts(absl::string_view packed, absl::Span<int64_t> out, int64_t& count) {
  WireReader wire(packed);
  uint64_t value = 0;
  while (!wire.done()) {
    if (!wire.Varint(value)) return false;
    if (count < static_cast<int64_t>(out.size())) {
      out[static_cast<size_t>(count)] = static_cast<int64_t>(value);
    }
    ++count;
  }
  return true;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendField(int field, absl::string_view content, std::string& out) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | kLengthDelimited, out);
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
  WireReader wire(list);
  uint32_t field = 0;
  uint32_t type = 0;
  int64_t count = 0;
  absl::string_view packed;
  while (!wire.done()) {
    if (!wire.Tag(field, type)) return DamagedList();
    if (field == 1 && type == kLengthDelimited) {
      if (!wire.Bytes(packed) || !UnpackFloats(packed, out, count)) return DamagedList();
    } else if (field == 1 && type == kFixed32) {
      float value = 0;
      if (!wire.Float(value)) return DamagedList();
      if (count < static_cast<int64_t>(out.size())) out[static_cast<size_t>(count)] = value;
      ++count;
    } else if (!wire.Skip(type)) {
      return DamagedList();
    }
  }
  return count;
}

absl::StatusOr<int64_t> ReadInts(absl::string_view list, absl::Span<int64_t> out) {
  WireReader wire(list);
  uint32_t field = 0;
  uint32_t type = 0;
  int64_t count = 0;
  absl::string_view packed;
  while (!wire.done()) {
    if (!wire.Tag(field, type)) return DamagedList();
    if (field == 1 && type == kLengthDelimited) {
      if (!wire.Bytes(packed) || !UnpackInts(packed, out, count)) return DamagedList();
    } else if (field == 1 && type == kVarint) {
      uint64_t value = 0;
      if (!wire.Varint(value)) return DamagedList();
      if (count < static_cast<int64_t>(out.size())) {
        out[static_cast<size_t>(count)] = static_cast<int64_t>(value);
      }
      ++count;
    } else if (!wire.Skip(type)) {
      return DamagedList();
    }
  }
  return count;
}

absl::StatusOr<int64_t> ReadBytes(absl::string_view list, absl::Span<absl::string_view> out) {
  WireReader wire(list);
  uint32_t field = 0;
  uint32_t type = 0;
  int64_t count = 0;
  absl::string_view value;
  while (!wire.done()) {
    if (!wire.Tag(field, type)) return DamagedList();
    if (field != 1 || type != kLengthDelimited) {
      if (!wire.Skip(type)) return DamagedList();
      continue;
    }
    if (!wire.Bytes(value)) return DamagedList();
    if (count < static_cast<int64_t>(out.size())) out[static_cast<size_t>(count)] = value;
    ++count;
  }
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
