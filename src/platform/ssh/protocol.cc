#include "platform/ssh/protocol.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::ssh {
namespace {

const Json* Find(const Json& json, absl::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(std::string(key));
  return found == json.end() ? nullptr : &*found;
}

std::vector<std::string> TextsAt(const Json& json, absl::string_view key) {
  std::vector<std::string> texts;
  const Json* list = Find(json, key);
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& item : *list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

}  // namespace

std::string TextAt(const Json& json, absl::string_view key) {
  const Json* value = Find(json, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

int64_t NumberAt(const Json& json, absl::string_view key) {
  const Json* value = Find(json, key);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : 0;
}

bool IsSet(const Json& json, absl::string_view key) {
  const Json* value = Find(json, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

Json TimeToJson(absl::Time time) { return absl::ToUnixMicros(time); }

absl::Time TimeAt(const Json& json, absl::string_view key) {
  return absl::FromUnixMicros(NumberAt(json, key));
}

Json StartToJson(const TaskStart& start) {
  return {{"task", start.task.ToString()},
          {"attempt", start.attempt},
          {"argv", start.launch.argv},
          {"env", start.launch.env},
          {"working_dir", start.launch.working_dir},
          {"port", start.port},
          {"port_is_picked", start.port_is_picked},
          {"waits_for_port", start.waits_for_port}};
}

absl::StatusOr<TaskStart> StartFromJson(const Json& json) {
  TaskStart start{.attempt = static_cast<int>(NumberAt(json, "attempt")),
                  .port = static_cast<int>(NumberAt(json, "port")),
                  .port_is_picked = IsSet(json, "port_is_picked"),
                  .waits_for_port = IsSet(json, "waits_for_port")};
  MUSTER_ASSIGN_OR_RETURN(start.task, TaskId::Parse(TextAt(json, "task")));
  start.launch.argv = TextsAt(json, "argv");
  start.launch.working_dir = TextAt(json, "working_dir");
  if (start.launch.argv.empty()) return absl::DataLossError("a start without a command");
  if (const Json* env = Find(json, "env"); env != nullptr && env->is_object()) {
    for (const auto& [name, value] : env->items()) {
      if (value.is_string()) start.launch.env[name] = value.get<std::string>();
    }
  }
  return start;
}

Json EndToJson(const AttemptEnd& end) {
  Json json = {{"reason", end.reason},
               {"advice", end.advice},
               {"last_lines", end.last_lines},
               {"may_retry", end.may_retry},
               {"port_taken", end.port_taken}};
  if (end.exit_code.has_value()) json["exit_code"] = *end.exit_code;
  return json;
}

AttemptEnd EndFromJson(const Json& json) {
  AttemptEnd end{.reason = TextAt(json, "reason"),
                 .advice = TextAt(json, "advice"),
                 .last_lines = TextsAt(json, "last_lines"),
                 .may_retry = IsSet(json, "may_retry"),
                 .port_taken = IsSet(json, "port_taken")};
  if (Find(json, "exit_code") != nullptr) {
    end.exit_code = static_cast<int>(NumberAt(json, "exit_code"));
  }
  return end;
}

Json PoliciesToJson(const Policies& policies) {
  Json json = {{"rotate_bytes", policies.log_rotate_bytes}, {"keep", policies.log_keep}};
  if (policies.stall.has_value()) {
    json["stall_ms"] = absl::ToInt64Milliseconds(policies.stall->timeout);
  }
  return json;
}

Policies PoliciesFromJson(const Json& json) {
  Policies policies;
  if (const int64_t bytes = NumberAt(json, "rotate_bytes"); bytes > 0) {
    policies.log_rotate_bytes = bytes;
  }
  policies.log_keep = static_cast<int>(NumberAt(json, "keep"));
  if (const int64_t stall = NumberAt(json, "stall_ms"); stall > 0) {
    policies.stall = StallPolicy{.timeout = absl::Milliseconds(stall)};
  }
  return policies;
}

Json PositionToJson(const LogPosition& position) {
  return {{"segment", position.segment}, {"offset", position.offset}};
}

LogPosition PositionFromJson(const Json& json) {
  return {.segment = static_cast<uint32_t>(NumberAt(json, "segment")),
          .offset = static_cast<uint64_t>(NumberAt(json, "offset"))};
}

}  // namespace muster::ssh
