#include "platform/ssh/protocol.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"

namespace muster::ssh {
namespace {

// The names of supervise::kLoads.
constexpr const char* kLoadNames[] = {"cpu", "memory", "read", "written", "received", "sent"};
static_assert(std::size(kLoadNames) == std::size(supervise::kLoads));

std::optional<supervise::Load> LoadMember(const Json& json, const char* key) {
  const Json& pair = base::MemberOf(json, key);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) {
    return std::nullopt;
  }
  const supervise::Load load{.mean = pair[0].get<double>(), .peak = pair[1].get<double>()};
  if (!(load.mean >= 0) || !(load.peak >= 0)) return std::nullopt;
  return load;
}

}  // namespace

Json TimeToJson(absl::Time time) { return absl::ToUnixMicros(time); }

absl::Time TimeMember(const Json& json, absl::string_view key) {
  return absl::FromUnixMicros(base::IntMember(json, key));
}

Json StartToJson(const supervise::TaskStart& start) {
  return {{"task", start.task.ToString()},
          {"attempt", start.attempt},
          {"argv", start.launch.argv},
          {"env", start.launch.env},
          {"working_dir", start.launch.working_dir},
          {"port", start.port},
          {"port_is_picked", start.port_is_picked},
          {"waits_for_port", start.waits_for_port}};
}

absl::StatusOr<supervise::TaskStart> StartFromJson(const Json& json) {
  supervise::TaskStart start{.attempt = static_cast<int>(base::IntMember(json, "attempt")),
                             .port = static_cast<int>(base::IntMember(json, "port")),
                             .port_is_picked = base::BoolMember(json, "port_is_picked"),
                             .waits_for_port = base::BoolMember(json, "waits_for_port")};
  MUSTER_ASSIGN_OR_RETURN(start.task, cluster::TaskId::Parse(base::TextMember(json, "task")));
  start.launch.argv = base::TextListMember(json, "argv");
  start.launch.working_dir = base::TextMember(json, "working_dir");
  if (start.launch.argv.empty()) return absl::DataLossError("a start without a command");
  if (const Json& env = base::MemberOf(json, "env"); env.is_object()) {
    for (const auto& [name, value] : env.items()) {
      if (value.is_string()) start.launch.env[name] = value.get<std::string>();
    }
  }
  return start;
}

Json EndToJson(const supervise::AttemptEnd& end) {
  Json json = {{"reason", end.reason},
               {"advice", end.advice},
               {"last_lines", end.last_lines},
               {"may_retry", end.may_retry},
               {"port_taken", end.port_taken}};
  if (end.exit_code.has_value()) json["exit_code"] = *end.exit_code;
  return json;
}

supervise::AttemptEnd EndFromJson(const Json& json) {
  supervise::AttemptEnd end{.reason = base::TextMember(json, "reason"),
                            .advice = base::TextMember(json, "advice"),
                            .last_lines = base::TextListMember(json, "last_lines"),
                            .may_retry = base::BoolMember(json, "may_retry"),
                            .port_taken = base::BoolMember(json, "port_taken")};
  if (json.is_object() && json.contains("exit_code")) {
    end.exit_code = static_cast<int>(base::IntMember(json, "exit_code"));
  }
  return end;
}

Json PoliciesToJson(const job::Policies& policies) {
  Json json = {{"rotate_bytes", policies.log_rotate_bytes}, {"keep", policies.log_keep}};
  if (policies.stall.has_value()) {
    json["stall_ms"] = absl::ToInt64Milliseconds(policies.stall->timeout);
  }
  return json;
}

job::Policies PoliciesFromJson(const Json& json) {
  job::Policies policies;
  if (const int64_t bytes = base::IntMember(json, "rotate_bytes"); bytes > 0) {
    policies.log_rotate_bytes = bytes;
  }
  policies.log_keep = static_cast<int>(base::IntMember(json, "keep"));
  if (const int64_t stall = base::IntMember(json, "stall_ms"); stall > 0) {
    policies.stall = job::StallPolicy{.timeout = absl::Milliseconds(stall)};
  }
  return policies;
}

Json SampleToJson(const supervise::Sample& sample) {
  Json json = {{"attempt", sample.attempt},
               {"time", TimeToJson(sample.time)},
               {"interval", absl::ToInt64Microseconds(sample.interval)}};
  for (size_t i = 0; i < std::size(kLoadNames); ++i) {
    const std::optional<supervise::Load>& load = sample.*supervise::kLoads[i];
    if (load.has_value()) json[kLoadNames[i]] = {load->mean, load->peak};
  }
  return json;
}

supervise::Sample SampleFromJson(const Json& json) {
  supervise::Sample sample{
      .time = TimeMember(json, "time"),
      .interval = absl::Microseconds(std::max<int64_t>(0, base::IntMember(json, "interval"))),
      .attempt = static_cast<int>(std::max<int64_t>(0, base::IntMember(json, "attempt")))};
  for (size_t i = 0; i < std::size(kLoadNames); ++i) {
    sample.*supervise::kLoads[i] = LoadMember(json, kLoadNames[i]);
  }
  return sample;
}

Json PositionToJson(const supervise::LogPosition& position) {
  return {{"segment", position.segment}, {"offset", position.offset}};
}

supervise::LogPosition PositionFromJson(const Json& json) {
  return {.segment = static_cast<uint32_t>(base::IntMember(json, "segment")),
          .offset = static_cast<uint64_t>(base::IntMember(json, "offset"))};
}

}  // namespace muster::ssh
