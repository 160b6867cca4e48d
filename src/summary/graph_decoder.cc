#include "summary/graph_decoder.h"

#include <limits>

#include "base/bytes/wire_reader.h"

namespace muster::summary {
namespace {

using base::VisitFields;
using base::WireReader;

constexpr size_t kMaxRank = 32;

// Returns the size of an element of a DataType, or 0 if unknown.
int64_t SizeOfType(uint64_t type) {
  switch (type) {
    case 4:   // uint8
    case 6:   // int8
    case 10:  // bool
      return 1;
    case 5:   // int16
    case 14:  // bfloat16
    case 17:  // uint16
    case 19:  // half
      return 2;
    case 1:   // float
    case 3:   // int32
    case 22:  // uint32
      return 4;
    case 2:   // double
    case 8:   // complex64
    case 9:   // int64
    case 23:  // uint64
      return 8;
    case 18:  // complex128
      return 16;
    default:
      return 0;
  }
}

// TensorShapeProto: field 2 has the dimensions, whose field 1 is the size.
bool DecodeShape(absl::string_view message, std::vector<int64_t>& shape) {
  return VisitFields(message, [&](WireReader& reader, uint32_t field, uint32_t type) {
    if (field != 2 || type != base::kLengthDelimited) return reader.Skip(type);
    absl::string_view dimension;
    uint64_t size = 0;
    if (!reader.Bytes(dimension) || shape.size() >= kMaxRank) return false;
    const bool valid =
        VisitFields(dimension, [&](WireReader& inner, uint32_t member, uint32_t kind) {
          return member == 1 && kind == base::kVarint ? inner.Varint(size) : inner.Skip(kind);
        });
    shape.push_back(static_cast<int64_t>(size));
    return valid;
  });
}

struct Attribute {
  absl::string_view key;
  uint64_t type = 0;
  std::optional<std::vector<int64_t>> shape;  // its own, or the first of its list
};

// AttrValue: list = 1 (of shapes = 7), type = 6, shape = 7.
bool DecodeValue(absl::string_view message, Attribute& attribute) {
  return VisitFields(message, [&](WireReader& reader, uint32_t field, uint32_t type) {
    if (field == 6 && type == base::kVarint) return reader.Varint(attribute.type);
    if (type != base::kLengthDelimited || (field != 1 && field != 7)) return reader.Skip(type);
    absl::string_view bytes;
    if (!reader.Bytes(bytes)) return false;
    if (field == 1) {
      return VisitFields(bytes, [&](WireReader& list, uint32_t member, uint32_t kind) {
        if (member != 7 || kind != base::kLengthDelimited || attribute.shape) {
          return list.Skip(kind);
        }
        absl::string_view shape;
        return list.Bytes(shape) && DecodeShape(shape, attribute.shape.emplace());
      });
    }
    return DecodeShape(bytes, attribute.shape.emplace());
  });
}

// An entry of the map of attributes: key = 1, value = 2.
bool DecodeAttribute(absl::string_view message, Attribute& attribute) {
  return VisitFields(message, [&](WireReader& reader, uint32_t field, uint32_t type) {
    if (type != base::kLengthDelimited || field > 2) return reader.Skip(type);
    absl::string_view bytes;
    if (!reader.Bytes(bytes)) return false;
    if (field == 2) return DecodeValue(bytes, attribute);
    attribute.key = bytes;
    return true;
  });
}

// Returns the product of the sizes and `element`, or nullopt if it is unknown or too large.
std::optional<int64_t> BytesOf(const std::vector<int64_t>& shape, int64_t element) {
  if (element == 0) return std::nullopt;
  int64_t bytes = element;
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && bytes > std::numeric_limits<int64_t>::max() / size)) {
      return std::nullopt;
    }
    bytes *= size;
  }
  return bytes;
}

// NodeDef: name = 1, op = 2, input = 3, device = 4, attr = 5.
bool DecodeNode(absl::string_view message, DecodedNode& node) {
  uint64_t element_type = 0;
  const bool valid = VisitFields(message, [&](WireReader& reader, uint32_t field, uint32_t type) {
    if (type != base::kLengthDelimited || field > 5) return reader.Skip(type);
    absl::string_view bytes;
    if (!reader.Bytes(bytes)) return false;
    if (field == 1) node.name = std::string(bytes);
    if (field == 2) node.op = std::string(bytes);
    if (field == 3) node.inputs.emplace_back(bytes);
    if (field == 4) node.device = std::string(bytes);
    if (field != 5) return true;
    Attribute attribute;
    if (!DecodeAttribute(bytes, attribute)) return false;
    if (attribute.key == "dtype" || attribute.key == "T") element_type = attribute.type;
    if ((attribute.key == "shape" || attribute.key == "_output_shapes") && attribute.shape) {
      node.shape = std::move(attribute.shape);
    }
    return true;
  });
  if (node.shape) node.bytes = BytesOf(*node.shape, SizeOfType(element_type));
  return valid;
}

}  // namespace

std::optional<std::vector<DecodedNode>> DecodeGraph(absl::string_view graph_def) {
  std::vector<DecodedNode> nodes;
  const bool valid = VisitFields(graph_def, [&](WireReader& reader, uint32_t field, uint32_t type) {
    if (field != 1 || type != base::kLengthDelimited) return reader.Skip(type);
    absl::string_view bytes;
    return reader.Bytes(bytes) && DecodeNode(bytes, nodes.emplace_back());
  });
  if (!valid) return std::nullopt;
  return nodes;
}

}  // namespace muster::summary
