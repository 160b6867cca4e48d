#include "data/config.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster::data {
namespace {

using Json = nlohmann::json;

// Leaves `to` unchanged if the key is absent.
template <typename T>
absl::Status Get(const Json& section, const char* key, T& to) {
  const auto found = section.find(key);
  if (found == section.end()) return absl::OkStatus();
  try {
    to = found->get<T>();
    return absl::OkStatus();
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", key, "' of 'data' has the wrong type: ", found->type_name()));
  }
}

// {image: {type: uint8, shape: [28, 28]}, label: int64}
absl::Status GetFeatures(const Json& features, DataConfig& config) {
  for (const auto& [name, value] : features.items()) {
    RecordFeature feature;
    if (value.is_string()) {
      feature.type = value.get<std::string>();
    } else if (value.is_object()) {
      MUSTER_RETURN_IF_ERROR(Get(value, "type", feature.type));
      MUSTER_RETURN_IF_ERROR(Get(value, "shape", feature.shape));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "feature '", name, "' of 'data' must be a type, or a map of type and shape"));
    }
    config.record_features[name] = std::move(feature);
  }
  return absl::OkStatus();
}

absl::Status GetRecordKeys(const Json& section, DataConfig& config) {
  MUSTER_RETURN_IF_ERROR(Get(section, "target", config.target));
  MUSTER_RETURN_IF_ERROR(Get(section, "on_error", config.on_error));
  return Get(section, "compression", config.compression);
}

}  // namespace

absl::StatusOr<DataConfig> ParseDataConfig(const Json& section) {
  DataConfig config;
  if (!section.is_object()) return absl::InvalidArgumentError("'data' is not a map");
  const auto path = section.find("path");
  const bool by_split = path != section.end() && path->is_object();
  const auto features = section.find("features");
  const bool of_records = features != section.end() && features->is_object();
  MUSTER_RETURN_IF_ERROR(Get(section, "format", config.format));
  MUSTER_RETURN_IF_ERROR(by_split ? Get(section, "path", config.paths)
                                  : Get(section, "path", config.path));
  MUSTER_RETURN_IF_ERROR(Get(section, "split", config.split));
  MUSTER_RETURN_IF_ERROR(Get(section, "examples", config.examples));
  MUSTER_RETURN_IF_ERROR(Get(section, "kind", config.kind));
  MUSTER_RETURN_IF_ERROR(Get(section, "classes", config.classes));
  MUSTER_RETURN_IF_ERROR(of_records ? GetFeatures(*features, config)
                                    : Get(section, "features", config.features));
  MUSTER_RETURN_IF_ERROR(Get(section, "length", config.length));
  MUSTER_RETURN_IF_ERROR(Get(section, "vocabulary", config.vocabulary));
  MUSTER_RETURN_IF_ERROR(Get(section, "shape", config.shape));
  MUSTER_RETURN_IF_ERROR(GetRecordKeys(section, config));
  return config;
}

}  // namespace muster::data
