// Names of enumeration values, and the conversion in both directions. The names of the enumerations
// in job_spec.h are those used in job files and in the stored spec.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "job/job_spec.h"

namespace muster::job {

template <typename Enum>
struct EnumNames;

template <>
struct EnumNames<JobFormat> {
  static constexpr std::pair<JobFormat, const char*> kAll[] = {
      {JobFormat::kNative, "native"},
      {JobFormat::kTfJobV1, "tfjob-v1"},
      {JobFormat::kTfJobV1Alpha1, "tfjob-v1alpha1"},
      {JobFormat::kRenderedCluster, "rendered-cluster"}};
};

template <>
struct EnumNames<RestartPolicy> {
  static constexpr std::pair<RestartPolicy, const char*> kAll[] = {
      {RestartPolicy::kNever, "never"},
      {RestartPolicy::kOnFailure, "on-failure"},
      {RestartPolicy::kAlways, "always"},
      {RestartPolicy::kExitCode, "exit-code"}};
};

template <>
struct EnumNames<RestartScope> {
  static constexpr std::pair<RestartScope, const char*> kAll[] = {{RestartScope::kTask, "task"},
                                                                  {RestartScope::kJob, "job"}};
};

template <>
struct EnumNames<SuccessPolicy> {
  static constexpr std::pair<SuccessPolicy, const char*> kAll[] = {
      {SuccessPolicy::kChief, "chief"}, {SuccessPolicy::kAllWorkers, "all_workers"}};
};

template <>
struct EnumNames<Readiness> {
  static constexpr std::pair<Readiness, const char*> kAll[] = {
      {Readiness::kStarted, "started"}, {Readiness::kListening, "listening"}};
};

template <>
struct EnumNames<Server> {
  static constexpr std::pair<Server, const char*> kAll[] = {
      {Server::kNone, "none"}, {Server::kTensorFlow, "tensorflow"}, {Server::kTrainer, "trainer"}};
};

template <>
struct EnumNames<StallAction> {
  static constexpr std::pair<StallAction, const char*> kAll[] = {{StallAction::kRestart, "restart"},
                                                                 {StallAction::kReport, "report"}};
};

// Returns "" if EnumNames<Enum> does not list the value.
template <typename Enum>
const char* NameOf(Enum value) {
  for (const auto& [candidate, name] : EnumNames<Enum>::kAll) {
    if (candidate == value) return name;
  }
  return "";
}

template <typename Enum>
std::optional<Enum> FromName(absl::string_view text) {
  for (const auto& [value, name] : EnumNames<Enum>::kAll) {
    if (text == name) return value;
  }
  return std::nullopt;
}

template <typename Enum>
std::vector<std::string> NamesOf() {
  std::vector<std::string> names;
  for (const auto& [value, name] : EnumNames<Enum>::kAll) names.emplace_back(name);
  return names;
}

}  // namespace muster::job
