#include "cli/data/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "data/image.h"

namespace muster::cli {
namespace {

using data::FeatureView;
using data::ListKind;

constexpr size_t kSampleValues = 6;
constexpr size_t kLongText = 200;
constexpr int64_t kSmallestSide = 4;
constexpr int64_t kMaxPreviewPixels = int64_t{1} << 24;

// Returns whether the text is short UTF-8 without control characters.
bool IsText(absl::string_view bytes) {
  const auto is_control = [](char byte) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(byte));
  };
  if (bytes.size() > kLongText || std::any_of(bytes.begin(), bytes.end(), is_control)) return false;
  return base::Printable(bytes) == bytes;
}

struct Square {
  int64_t side = 0;
  int64_t channels = 1;
};

// Infers the square image that has this number of raw bytes.
std::optional<Square> SquareOf(int64_t bytes) {
  for (const int64_t channels : {1, 3}) {
    const int64_t pixels = bytes / channels;
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
    if (side >= kSmallestSide && side * side * channels == bytes) return Square{side, channels};
  }
  return std::nullopt;
}

template <typename T>
void AddNumbers(const std::vector<T>& values, FeatureSummary& feature) {
  for (const T number : values) {
    const auto value = static_cast<double>(number);
    if (!std::isfinite(value)) continue;
    feature.min = feature.has_number ? std::min(feature.min, value) : value;
    feature.max = feature.has_number ? std::max(feature.max, value) : value;
    feature.has_number = true;
  }
  if (feature.examples > 1) return;
  feature.sample = nlohmann::ordered_json::array();
  for (size_t i = 0; i < std::min(values.size(), kSampleValues); ++i) {
    feature.sample.push_back(values[i]);
  }
}

absl::Status AddFloats(const FeatureView& view, int64_t count, FeatureSummary& feature) {
  std::vector<float> values(static_cast<size_t>(count));
  MUSTER_RETURN_IF_ERROR(data::ReadFloats(view.list, absl::MakeSpan(values)).status());
  AddNumbers(values, feature);
  return absl::OkStatus();
}

absl::Status AddInts(const FeatureView& view, int64_t count, FeatureSummary& feature) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  MUSTER_RETURN_IF_ERROR(data::ReadInts(view.list, absl::MakeSpan(values)).status());
  AddNumbers(values, feature);
  return absl::OkStatus();
}

absl::Status AddTexts(const FeatureView& view, int64_t count, FeatureSummary& feature) {
  std::vector<absl::string_view> values(static_cast<size_t>(count));
  MUSTER_RETURN_IF_ERROR(data::ReadBytes(view.list, absl::MakeSpan(values)).status());
  for (const absl::string_view value : values) {
    const auto size = static_cast<int64_t>(value.size());
    feature.min_bytes = feature.max_bytes < 0 ? size : std::min(feature.min_bytes, size);
    feature.max_bytes = std::max(feature.max_bytes, size);
  }
  if (feature.examples > 1) return absl::OkStatus();
  feature.sample = nlohmann::ordered_json::array();
  if (!values.empty()) feature.first = std::string(values[0]);
  for (size_t i = 0; i < std::min(values.size(), kSampleValues); ++i) {
    if (IsText(values[i])) feature.sample.push_back(std::string(values[i]));
  }
  return absl::OkStatus();
}

std::string Range(int64_t min, int64_t max) {
  return min == max ? absl::StrCat(min) : absl::StrCat(min, " to ", max);
}

// Scales an image to `width` columns of gray values.
std::vector<std::string> Draw(const std::vector<uint8_t>& grey, int64_t height, int64_t width,
                              int64_t columns) {
  constexpr absl::string_view kShades = " .:-=+*#%@";
  columns = std::clamp<int64_t>(columns, 1, width);
  // A character is about twice as high as wide.
  const int64_t rows = std::max<int64_t>(1, height * columns / width / 2);
  std::vector<std::string> lines;
  for (int64_t row = 0; row < rows; ++row) {
    std::string line;
    for (int64_t column = 0; column < columns; ++column) {
      int64_t sum = 0;
      int64_t count = 0;
      for (int64_t y = row * height / rows; y < (row + 1) * height / rows; ++y) {
        for (int64_t x = column * width / columns; x < (column + 1) * width / columns; ++x) {
          sum += grey[static_cast<size_t>(y * width + x)];
          ++count;
        }
      }
      const int64_t mean = count == 0 ? 0 : sum / count;
      line.push_back(kShades[static_cast<size_t>(mean * 10 / 256)]);
    }
    lines.push_back(std::string(absl::StripTrailingAsciiWhitespace(line)));
  }
  return lines;
}

}  // namespace

absl::Status ExampleSummary::AddFeature(const FeatureView& view) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t count, data::CountValues(view));
  FeatureSummary& feature = features_[std::string(view.name)];
  ++feature.examples;
  if (feature.examples == 1) {
    feature.kind = view.kind;
    feature.min_values = count;
    feature.max_bytes = -1;
  }
  feature.min_values = std::min(feature.min_values, count);
  feature.max_values = std::max(feature.max_values, count);
  if (view.kind != feature.kind) {
    feature.mixed = true;
    return absl::OkStatus();
  }
  switch (view.kind) {
    case ListKind::kFloat:
      return AddFloats(view, count, feature);
    case ListKind::kInt64:
      return AddInts(view, count, feature);
    case ListKind::kBytes:
      return AddTexts(view, count, feature);
    case ListKind::kNone:
      break;
  }
  return absl::OkStatus();
}

absl::Status ExampleSummary::Add(absl::string_view example) {
  ++examples_;
  return data::VisitFeatures(example, [this](const FeatureView& view) { return AddFeature(view); });
}

std::string ExampleSummary::TypeOf(const FeatureSummary& feature) {
  return absl::StrCat(data::ToString(feature.kind), feature.mixed ? " and others" : "");
}

std::string ExampleSummary::ValuesOf(const FeatureSummary& feature) {
  const std::string count = Range(feature.min_values, feature.max_values);
  if (feature.kind != ListKind::kBytes || feature.max_bytes < 0) return count;
  return absl::StrCat(count, " of ", Range(feature.min_bytes, feature.max_bytes), " bytes");
}

std::string ExampleSummary::SampleOf(const FeatureSummary& feature) {
  if (feature.kind == ListKind::kBytes) {
    const auto info = data::ReadImageInfo(feature.first);
    if (info.ok()) {
      return absl::StrCat(info->format, ", ", info->height, " x ", info->width,
                          info->channels == 3 ? ", coloured" : ", grey");
    }
    if (feature.sample.empty()) return feature.first.empty() ? "" : "raw bytes";
  }
  std::vector<std::string> words;
  for (const auto& value : feature.sample) {
    if (value.is_string()) {
      words.push_back(absl::StrCat("'", base::Printable(value.get<std::string>()), "'"));
    } else {
      words.push_back(value.is_number_float() ? absl::StrCat(value.get<double>()) : value.dump());
    }
  }
  std::string text = absl::StrJoin(words, ", ");
  if (feature.max_values > static_cast<int64_t>(words.size())) absl::StrAppend(&text, ", …");
  if (feature.has_number && feature.min < feature.max) {
    absl::StrAppend(&text, "  (", feature.min, " to ", feature.max, ")");
  }
  return text;
}

std::string ExampleSummary::DeclarationOf(const FeatureSummary& feature) {
  if (feature.mixed || feature.min_values != feature.max_values || feature.max_values == 0)
    return "";
  if (feature.kind == ListKind::kFloat || feature.kind == ListKind::kInt64) {
    const std::string type(data::ToString(feature.kind));
    if (feature.max_values == 1) return type;
    return absl::StrCat("{type: ", type, ", shape: [", feature.max_values, "]}");
  }
  if (feature.max_values != 1) return "";
  const auto info = data::ReadImageInfo(feature.first);
  if (info.ok()) {
    return absl::StrCat("{type: ", info->format, ", shape: [", info->height, ", ", info->width,
                        info->channels == 3 ? ", 3" : "", "]}");
  }
  const auto square = SquareOf(feature.max_bytes);
  if (!square || feature.min_bytes != feature.max_bytes || !feature.sample.empty()) return "";
  return absl::StrCat("{type: uint8, shape: [", square->side, ", ", square->side,
                      square->channels == 3 ? ", 3" : "", "]}");
}

std::string ExampleSummary::JobFeatures() const {
  const auto label = features_.find("label");
  if (label == features_.end() || label->second.kind == ListKind::kBytes) return "";
  const std::string target = DeclarationOf(label->second);
  std::string best;
  for (const auto& [name, feature] : features_) {
    const std::string declaration = DeclarationOf(feature);
    // A single number beside the label (a height, an id) is not the input.
    if (name == "label" || declaration.empty() || declaration[0] != '{') continue;
    if (!best.empty()) return "";
    best = absl::StrCat(name, ": ", declaration);
  }
  if (best.empty() || target.empty()) return "";
  return absl::StrCat("{", best, ", label: ", target, "}");
}

std::optional<std::vector<std::string>> DrawImage(absl::string_view bytes, int columns) {
  const auto info = data::ReadImageInfo(bytes);
  if (info.ok()) {
    if (info->height * info->width > kMaxPreviewPixels) return std::nullopt;
    std::vector<uint8_t> grey(static_cast<size_t>(info->height * info->width));
    if (!data::DecodeImage(bytes, 1, absl::MakeSpan(grey)).ok()) return std::nullopt;
    return Draw(grey, info->height, info->width, columns);
  }
  const auto square = SquareOf(static_cast<int64_t>(bytes.size()));
  if (!square || IsText(bytes) || square->side * square->side > kMaxPreviewPixels) {
    return std::nullopt;
  }
  std::vector<uint8_t> grey;
  const auto step = static_cast<size_t>(square->channels);
  for (size_t i = 0; i < bytes.size(); i += step) {
    int sum = 0;
    for (size_t k = 0; k < step; ++k) sum += static_cast<unsigned char>(bytes[i + k]);
    grey.push_back(static_cast<uint8_t>(sum / static_cast<int>(step)));
  }
  return Draw(grey, square->side, square->side, columns);
}

}  // namespace muster::cli
