#include "train/core/config_section.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::train {

ConfigSection::ConfigSection(const nlohmann::json& section, absl::string_view what)
    : section_(section), what_(what) {
  if (!section.is_object() && !section.is_null()) {
    Refuse(absl::StrCat("is a ", section.type_name(), "; write a map of keys and values"));
  }
}

bool ConfigSection::Has(const char* key) const {
  return section_.is_object() && section_.contains(key);
}

const nlohmann::json* ConfigSection::Find(const char* key) {
  known_.insert(key);
  if (!status_.ok() || !section_.is_object()) return nullptr;
  const auto found = section_.find(key);
  return found == section_.end() ? nullptr : &*found;
}

double ConfigSection::Number(const char* key, double min, double max, double fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  Refuse(absl::StrCat("has '", key, "' that is not a number from ", min, " to ", max));
  return fallback;
}

int64_t ConfigSection::Int(const char* key, int64_t min, int64_t max, int64_t fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  // get<int64_t>() of an unsigned number beyond INT64_MAX wraps to a negative one.
  if (value->is_number_integer() && (!value->is_number_unsigned() || value->get<int64_t>() >= 0)) {
    const auto number = value->get<int64_t>();
    if (number >= min && number <= max) return number;
  }
  Refuse(absl::StrCat("has '", key, "' that is not a whole number from ", min, " to ", max));
  return fallback;
}

bool ConfigSection::Bool(const char* key, bool fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Refuse(absl::StrCat("has '", key, "' that is neither true nor false"));
  return fallback;
}

std::string ConfigSection::Choice(const char* key, absl::Span<const absl::string_view> choices,
                                  absl::string_view fallback) {
  const nlohmann::json* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  }
  Refuse(absl::StrCat("has '", key, "' that is none of ", absl::StrJoin(choices, ", ")));
  return std::string(fallback);
}

void ConfigSection::Refuse(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(what_, " ", message));
}

absl::Status ConfigSection::Finish() {
  if (!status_.ok() || !section_.is_object()) return status_;
  for (const auto& item : section_.items()) {
    if (known_.count(item.key()) > 0) continue;
    Refuse(absl::StrCat("has '", item.key(),
                        "', which is not used here; remove it or choose among ",
                        absl::StrJoin(known_, ", ")));
    break;
  }
  return status_;
}

}  // namespace muster::train
