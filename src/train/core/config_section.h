// Reads checked values from one section of a job's train configuration.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// Validates every value: a configuration written by a program has not passed the job file's
// validation. Finish() returns the first error; after an error every getter returns its fallback.
// A null section reads like {}. Not thread-safe.
class ConfigSection {
 public:
  // `what` names the section in errors: "'optimizer' of train". `section` must outlive this object.
  ConfigSection(const nlohmann::json& section, absl::string_view what);

  bool Has(const char* key) const;
  // Each getter returns the value of `key`, or `fallback` if it is absent. A value of the wrong
  // type or outside of [min, max] is an error.
  double Number(const char* key, double min, double max, double fallback);
  int64_t Int(const char* key, int64_t min, int64_t max, int64_t fallback);
  bool Bool(const char* key, bool fallback);
  // The value must be one of `choices`.
  std::string Choice(const char* key, absl::Span<const absl::string_view> choices,
                     absl::string_view fallback);

  // Records an error that no single value has.
  void Refuse(absl::string_view message);
  // Returns the first error. A key that no getter was called for is an error, too.
  absl::Status Finish();

 private:
  const nlohmann::json* Find(const char* key);

  const nlohmann::json& section_;
  std::string what_;
  std::set<std::string> known_;
  absl::Status status_;
};

}  // namespace muster::train
