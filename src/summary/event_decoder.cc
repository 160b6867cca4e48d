#include "summary/event_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/bytes/wire_reader.h"

namespace muster::summary {
namespace {

using base::kFixed32;
using base::kFixed64;
using base::kLengthDelimited;
using base::kVarint;
using base::WireReader;

// Values of tensorflow.DataType and tensorflow.SessionLog.SessionStatus.
constexpr uint64_t kFloatType = 1;
constexpr uint64_t kDoubleType = 2;
constexpr uint64_t kSessionStart = 1;

template <typename T>
bool AppendPacked(absl::string_view packed, std::vector<T>& out) {
  if (packed.size() % sizeof(T) != 0) return false;
  const size_t before = out.size();
  out.resize(before + packed.size() / sizeof(T));
  if (!packed.empty()) std::memcpy(out.data() + before, packed.data(), packed.size());
  return true;
}

// Reads one field of a repeated double, packed or not.
bool ReadDoubles(WireReader& wire, uint32_t type, std::vector<double>& out) {
  if (type == kFixed64) return wire.Double(out.emplace_back());
  absl::string_view packed;
  return type == kLengthDelimited && wire.Bytes(packed) && AppendPacked(packed, out);
}

bool ReadFloats(WireReader& wire, uint32_t type, std::vector<float>& out) {
  if (type == kFixed32) return wire.Float(out.emplace_back());
  absl::string_view packed;
  return type == kLengthDelimited && wire.Bytes(packed) && AppendPacked(packed, out);
}

bool DecodeHistogram(absl::string_view message, Histogram& histogram) {
  const bool whole =
      base::VisitFields(message, [&](WireReader& wire, uint32_t field, uint32_t type) {
        double* const numbers[] = {&histogram.min, &histogram.max, &histogram.count, &histogram.sum,
                                   &histogram.sum_of_squares};
        if (field <= 5 && type == kFixed64) return wire.Double(*numbers[field - 1]);
        if (field == 6) return ReadDoubles(wire, type, histogram.limits);
        if (field == 7) return ReadDoubles(wire, type, histogram.counts);
        return wire.Skip(type);
      });
  const size_t buckets = std::min(histogram.limits.size(), histogram.counts.size());
  histogram.limits.resize(buckets);
  histogram.counts.resize(buckets);
  return whole;
}

// Sets `scalar` if the TensorProto has no dimension and one float or double.
bool DecodeScalarTensor(absl::string_view message, std::optional<float>& scalar) {
  uint64_t dtype = 0;
  absl::string_view shape, content;
  std::vector<float> floats;
  std::vector<double> doubles;
  const bool whole =
      base::VisitFields(message, [&](WireReader& wire, uint32_t field, uint32_t type) {
        if (field == 1 && type == kVarint) return wire.Varint(dtype);
        if (field == 2 && type == kLengthDelimited) return wire.Bytes(shape);
        if (field == 4 && type == kLengthDelimited) return wire.Bytes(content);
        if (field == 5) return ReadFloats(wire, type, floats);
        if (field == 6) return ReadDoubles(wire, type, doubles);
        return wire.Skip(type);
      });
  if (!whole || !shape.empty()) return whole;
  if (dtype == kFloatType && (floats.size() == 1 || AppendPacked(content, floats))) {
    if (floats.size() == 1) scalar = floats[0];
  } else if (dtype == kDoubleType && (doubles.size() == 1 || AppendPacked(content, doubles))) {
    if (doubles.size() == 1) scalar = static_cast<float>(doubles[0]);
  }
  return true;
}

bool DecodeValue(absl::string_view message, Event& event) {
  std::string tag;
  std::optional<float> scalar;
  std::optional<Histogram> histogram;
  const bool whole =
      base::VisitFields(message, [&](WireReader& wire, uint32_t field, uint32_t type) {
        absl::string_view bytes;
        if (field == 2 && type == kFixed32) return wire.Float(scalar.emplace());
        if (type != kLengthDelimited) return wire.Skip(type);
        if (!wire.Bytes(bytes)) return false;
        if (field == 1) tag = std::string(bytes);
        if (field == 5) return DecodeHistogram(bytes, histogram.emplace());
        if (field == 8) return DecodeScalarTensor(bytes, scalar);
        return true;
      });
  if (!whole) return false;
  if (scalar) event.scalars.push_back({tag, *scalar});
  if (histogram) event.distributions.push_back({tag, *std::move(histogram)});
  return true;
}

bool DecodeSummary(absl::string_view message, Event& event) {
  return base::VisitFields(message, [&](WireReader& wire, uint32_t field, uint32_t type) {
    absl::string_view bytes;
    if (field != 1 || type != kLengthDelimited) return wire.Skip(type);
    return wire.Bytes(bytes) && DecodeValue(bytes, event);
  });
}

bool DecodeSessionLog(absl::string_view message, bool& restarted) {
  return base::VisitFields(message, [&](WireReader& wire, uint32_t field, uint32_t type) {
    uint64_t status = 0;
    if (field != 1 || type != kVarint) return wire.Skip(type);
    if (!wire.Varint(status)) return false;
    restarted = status == kSessionStart;
    return true;
  });
}

}  // namespace

std::optional<Event> DecodeEvent(absl::string_view message) {
  Event event;
  double wall_time = 0;
  const bool whole =
      base::VisitFields(message, [&](WireReader& wire, uint32_t field, uint32_t type) {
        if (field == 1 && type == kFixed64) return wire.Double(wall_time);
        if (field == 2 && type == kVarint) {
          uint64_t step = 0;
          if (!wire.Varint(step)) return false;
          event.step = static_cast<int64_t>(step);
          return true;
        }
        if (type != kLengthDelimited) return wire.Skip(type);
        absl::string_view bytes;
        if (!wire.Bytes(bytes)) return false;
        if (field == 3) event.file_version = std::string(bytes);
        if (field == 4) event.graph_def = std::string(bytes);
        if (field == 5) return DecodeSummary(bytes, event);
        if (field == 7) return DecodeSessionLog(bytes, event.restarted);
        return true;
      });
  if (!whole) return std::nullopt;
  event.time = absl::UnixEpoch() + absl::Seconds(std::isfinite(wall_time) ? wall_time : 0);
  return event;
}

}  // namespace muster::summary
