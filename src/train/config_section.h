// Checked values out of one section of a job's train configuration.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace muster::train {

// The job file's reader has checked a job that came through it; a configuration written by a
// program has not been, so nothing is believed here. The first mistake is kept and Finish() returns
// it; after one, every value is its fallback. `section` must outlive the reader; null reads like
// {}.
class ConfigSection {
 public:
  // `what` names the section in errors: "'optimizer' of train".
  ConfigSection(const nlohmann::json& section, absl::string_view what);

  bool Has(const char* key) const;
  // A finite number in [min, max].
  double Number(const char* key, double min, double max, double fallback);
  int64_t Int(const char* key, int64_t min, int64_t max, int64_t fallback);
  bool Bool(const char* key, bool fallback);
  // One of `choices`.
  std::string Choice(const char* key, absl::Span<const absl::string_view> choices,
                     absl::string_view fallback);

  // Records a mistake that is in no single value.
  void Refuse(absl::string_view message);
  // The first mistake; a key that nobody asked for is one.
  absl::Status Finish();

 private:
  const nlohmann::json* Find(const char* key);

  const nlohmann::json& section_;
  std::string what_;
  std::set<std::string> known_;
  absl::Status status_;
};

}  // namespace muster::train
