#include "data/tfrecord/record_feature.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/suggest.h"
#include "data/dataset.h"
#include "data/image.h"

namespace muster::data {
namespace {

// Returns nullopt if a dimension is not positive or the product is too large.
std::optional<int64_t> Elements(const base::Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 1 || size > kMaxFeatureBytes / elements) return std::nullopt;
    elements *= size;
  }
  if (elements > kMaxFeatureBytes / static_cast<int64_t>(sizeof(int64_t))) return std::nullopt;
  return elements;
}

// Returns advice on the type that reads a list of that kind.
absl::string_view TypeFor(ListKind kind) {
  switch (kind) {
    case ListKind::kFloat:
      return "write 'type: float'";
    case ListKind::kInt64:
      return "write 'type: int64'";
    default:
      return "write 'type: uint8' for raw bytes, jpeg or png for an image";
  }
}

}  // namespace

RecordColumn::RecordColumn(std::string name, const RecordFeature& declared, Type type)
    : name_(std::move(name)), declared_(declared.type), type_(type), shape_(declared.shape) {
  for (size_t i = 0; i < table_.size(); ++i) table_[i] = static_cast<float>(i) / 255;
}

absl::StatusOr<RecordColumn> RecordColumn::Make(const std::string& name,
                                                const RecordFeature& declared, Role role) {
  static const auto& kTypes = *new std::map<std::string, Type>{{"uint8", Type::kBytes},
                                                               {"float", Type::kFloat},
                                                               {"int64", Type::kInt64},
                                                               {"jpeg", Type::kImage},
                                                               {"png", Type::kImage}};
  const auto type = kTypes.find(declared.type);
  if (type == kTypes.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("feature '", name, "' of data has the unknown type '", declared.type, "'",
                     base::DidYouMean(declared.type, {"uint8", "float", "int64", "jpeg", "png"}),
                     "; expected uint8, float, int64, jpeg or png"));
  }
  RecordColumn column(name, declared, type->second);
  MUSTER_RETURN_IF_ERROR(column.Complete(role));
  return column;
}

absl::Status RecordColumn::Complete(Role role) {
  const auto elements = Elements(shape_);
  if (!elements) {
    return Mistake(absl::StrCat("has the shape ", base::ToString(shape_),
                                "; dimensions must be at least 1, and an example at most 1 GiB"));
  }
  elements_ = *elements;
  feature_ = {type_ == Type::kInt64 ? base::DType::kInt64 : base::DType::kFloat32, shape_};
  if (role == Role::kTarget) {
    if (type_ == Type::kBytes || type_ == Type::kImage) {
      return Mistake(absl::StrCat("is the target and has the type ", declared_,
                                  "; targets are int64 (classes) or float; 'target' names another "
                                  "feature"));
    }
    if (type_ == Type::kFloat && shape_.empty()) feature_.shape = {1};
    return absl::OkStatus();
  }
  if (type_ == Type::kImage) return CompleteImage();
  if (type_ == Type::kBytes && shape_.empty()) {
    return Mistake("lacks 'shape', which raw bytes need, such as 'shape: [28, 28]'");
  }
  channels_last_ =
      type_ == Type::kBytes && shape_.size() == 3 && (shape_[2] == 1 || shape_[2] == 3);
  if (channels_last_) feature_.shape = {shape_[2], shape_[0], shape_[1]};
  if (shape_.empty()) feature_.shape = {1};
  if (shape_.size() == 2 && type_ == Type::kBytes) feature_.shape.insert(feature_.shape.begin(), 1);
  return absl::OkStatus();
}

absl::Status RecordColumn::CompleteImage() {
  if (shape_.size() == 2) shape_.push_back(1);
  if (shape_.size() != 3 || (shape_[2] != 1 && shape_[2] != 3)) {
    return Mistake(
        "must have 'shape: [height, width]' for grey images, or [height, width, 3] for coloured "
        "ones");
  }
  feature_.shape = {shape_[2], shape_[0], shape_[1]};
  return absl::OkStatus();
}

absl::Status RecordColumn::Mistake(absl::string_view text) const {
  return absl::InvalidArgumentError(absl::StrCat("feature '", name_, "' ", text));
}

absl::Status RecordColumn::CheckKind(const FeatureView& found) const {
  if (found.name.empty() && found.kind == ListKind::kNone) {
    return Mistake("is not in the record; `muster data inspect` shows which features there are");
  }
  const ListKind expected = type_ == Type::kFloat   ? ListKind::kFloat
                            : type_ == Type::kInt64 ? ListKind::kInt64
                                                    : ListKind::kBytes;
  if (found.kind == expected) return absl::OkStatus();
  if (found.kind == ListKind::kNone) {
    return Mistake("is empty in this record; every record needs a value");
  }
  return Mistake(absl::StrCat("has ", ToString(found.kind), " values, but the job declares it as ",
                              declared_, "; ", TypeFor(found.kind)));
}

absl::Status RecordColumn::CheckCount(int64_t count, absl::string_view what) const {
  if (count == elements_) return absl::OkStatus();
  return Mistake(absl::StrCat("has ", count, " ", what, ", but the job declares the shape ",
                              base::ToString(shape_), ", which is ", elements_,
                              "; correct 'shape', or the data"));
}

void RecordColumn::ToChannelsFirst(absl::Span<const uint8_t> pixels, float* out) const {
  const auto channels = static_cast<size_t>(shape_[2]);
  for (size_t channel = 0; channel < channels; ++channel) {
    for (size_t i = channel; i < pixels.size(); i += channels) *out++ = table_[pixels[i]];
  }
}

absl::Status RecordColumn::ReadRaw(absl::string_view bytes, float* out) const {
  MUSTER_RETURN_IF_ERROR(CheckCount(static_cast<int64_t>(bytes.size()), "bytes"));
  if (channels_last_) {
    ToChannelsFirst({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, out);
    return absl::OkStatus();
  }
  for (const char byte : bytes) *out++ = table_[static_cast<unsigned char>(byte)];
  return absl::OkStatus();
}

absl::Status RecordColumn::ReadImage(absl::string_view bytes, float* out) const {
  const auto info = ReadImageInfo(bytes);
  if (!info.ok()) return base::Annotate(info.status(), absl::StrCat("feature '", name_, "'"));
  if (info->height != shape_[0] || info->width != shape_[1]) {
    return Mistake(absl::StrCat("is an image of ", info->height, " x ", info->width,
                                " (height x width), but the job declares ", shape_[0], " x ",
                                shape_[1],
                                "; all images of a data set must have the same size: "
                                "scale them before writing records"));
  }
  std::vector<uint8_t> pixels(static_cast<size_t>(elements_));
  const absl::Status status = DecodeImage(bytes, shape_[2], absl::MakeSpan(pixels));
  if (!status.ok()) return base::Annotate(status, absl::StrCat("feature '", name_, "'"));
  ToChannelsFirst(pixels, out);
  return absl::OkStatus();
}

absl::Status RecordColumn::Read(const FeatureView& found, void* out) const {
  MUSTER_RETURN_IF_ERROR(CheckKind(found));
  const auto size = static_cast<size_t>(elements_);
  absl::StatusOr<int64_t> count;
  absl::string_view text;
  switch (type_) {
    case Type::kFloat:
      count = ReadFloats(found.list, absl::MakeSpan(static_cast<float*>(out), size));
      break;
    case Type::kInt64:
      count = ReadInts(found.list, absl::MakeSpan(static_cast<int64_t*>(out), size));
      break;
    case Type::kBytes:
    case Type::kImage:
      count = ReadBytes(found.list, absl::MakeSpan(&text, 1));
      break;
  }
  if (!count.ok()) return base::Annotate(count.status(), absl::StrCat("feature '", name_, "'"));
  if (type_ == Type::kFloat || type_ == Type::kInt64) return CheckCount(*count, "values");
  if (*count != 1) {
    return Mistake(absl::StrCat("has ", *count, " texts, but the job declares it as ", declared_,
                                ", which is one"));
  }
  auto* values = static_cast<float*>(out);
  return type_ == Type::kBytes ? ReadRaw(text, values) : ReadImage(text, values);
}

}  // namespace muster::data
