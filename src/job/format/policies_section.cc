#include "job/format/policies_section.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/units.h"
#include "codec/map_reader.h"
#include "job/enum_names.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

template <typename Enum>
std::optional<Enum> ReadEnum(MapReader& reader, absl::string_view key) {
  const std::optional<std::string> name = reader.Choice(key, NamesOf<Enum>());
  return name ? FromName<Enum>(*name) : std::nullopt;
}

// Reads a timeout, which must not be zero: a zero timeout would fail every job.
std::optional<absl::Duration> ReadPositive(MapReader& reader, absl::string_view key,
                                           Diagnostics& diagnostics) {
  const std::optional<absl::Duration> duration = reader.Duration(key);
  if (!duration || *duration > absl::ZeroDuration()) return duration;
  diagnostics.Add(reader.Find(key)->mark,
                  absl::StrCat("'", key, "' of ", reader.what(), " must be more than 0"));
  return std::nullopt;
}

std::optional<StallPolicy> ReadStall(MapReader& policies, Diagnostics& diagnostics) {
  const Node* node = policies.Find("stall");
  if (node == nullptr) return std::nullopt;
  StallPolicy stall;
  std::optional<absl::Duration> timeout;
  if (node->kind == Node::Kind::kScalar) {
    timeout = ReadPositive(policies, "stall", diagnostics);
  } else {
    MapReader reader(*node, "stall", diagnostics);
    reader.Require("timeout",
                   "the time without progress after which a task has stalled, such as 10m");
    timeout = ReadPositive(reader, "timeout", diagnostics);
    stall.action = ReadEnum<StallAction>(reader, "action").value_or(stall.action);
    reader.Finish();
  }
  if (!timeout) return std::nullopt;
  stall.timeout = *timeout;
  return stall;
}

void ReadLogs(MapReader& reader, Policies& policies, Diagnostics& diagnostics) {
  constexpr int64_t kMinRotateBytes = 4096;
  constexpr int64_t kMaxLogs = 1000;
  const Node* node = reader.Find("logs");
  if (node == nullptr) return;
  MapReader logs(*node, "logs", diagnostics);
  if (const auto bytes = logs.Bytes("rotate_at")) {
    policies.log_rotate_bytes = *bytes;
    if (*bytes < kMinRotateBytes) {
      diagnostics.Add(logs.Find("rotate_at")->mark,
                      absl::StrCat("'rotate_at' of logs must be ",
                                   base::FormatBytes(kMinRotateBytes), " or more"));
    }
  }
  policies.log_keep = static_cast<int>(logs.Int("keep", 0, kMaxLogs).value_or(policies.log_keep));
  logs.Finish();
}

void ReadBackoff(MapReader& reader, Policies& policies, Diagnostics& diagnostics) {
  policies.backoff = reader.Duration("backoff").value_or(policies.backoff);
  const std::optional<absl::Duration> max = reader.Duration("max_backoff");
  if (max && *max < policies.backoff) {
    diagnostics.Add(
        reader.Find("max_backoff")->mark,
        absl::StrCat("'max_backoff' (", FormatDuration(*max), ") is less than 'backoff' (",
                     FormatDuration(policies.backoff), ")"));
  }
  policies.max_backoff = max.value_or(std::max(policies.max_backoff, policies.backoff));
}

}  // namespace

PoliciesSection ReadPolicies(const Node& node, Diagnostics& diagnostics) {
  constexpr int64_t kMaxRestarts = 1'000'000;
  PoliciesSection section;
  Policies& policies = section.policies;
  MapReader reader(node, "policies", diagnostics);
  policies.max_restarts =
      static_cast<int>(reader.Int("max_restarts", 0, kMaxRestarts).value_or(policies.max_restarts));
  policies.restart_scope =
      ReadEnum<RestartScope>(reader, "restart_scope").value_or(policies.restart_scope);
  section.restart = ReadEnum<RestartPolicy>(reader, "restart");
  ReadBackoff(reader, policies, diagnostics);
  policies.start_timeout =
      ReadPositive(reader, "start_timeout", diagnostics).value_or(policies.start_timeout);
  policies.deadline = ReadPositive(reader, "deadline", diagnostics);
  policies.stop_grace = reader.Duration("stop_grace").value_or(policies.stop_grace);
  policies.finish_grace = reader.Duration("finish_grace").value_or(policies.finish_grace);
  policies.host_timeout =
      ReadPositive(reader, "host_timeout", diagnostics).value_or(policies.host_timeout);
  if (const auto success = ReadEnum<SuccessPolicy>(reader, "success")) {
    policies.success = *success;
    section.has_success = true;
  }
  policies.stall = ReadStall(reader, diagnostics);
  ReadLogs(reader, policies, diagnostics);
  reader.Finish();
  return section;
}

}  // namespace muster::job
