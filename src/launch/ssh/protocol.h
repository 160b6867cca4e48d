// What supervisor and agent tell each other about tasks, as JSON. docs/formats/agent.md.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "launch/log_reader.h"
#include "launch/runner.h"
#include "nlohmann/json.hpp"

namespace muster::ssh {

using Json = nlohmann::json;

// Members of a message from elsewhere; what is absent or of another kind is empty.
std::string TextAt(const Json& json, absl::string_view key);
int64_t NumberAt(const Json& json, absl::string_view key);
bool IsSet(const Json& json, absl::string_view key);

Json TimeToJson(absl::Time time);
absl::Time TimeAt(const Json& json, absl::string_view key);

Json StartToJson(const TaskStart& start);
absl::StatusOr<TaskStart> StartFromJson(const Json& json);

Json EndToJson(const AttemptEnd& end);
AttemptEnd EndFromJson(const Json& json);

// Those that an agent heeds: of stalls and of logs.
Json PoliciesToJson(const Policies& policies);
Policies PoliciesFromJson(const Json& json);

Json PositionToJson(const LogPosition& position);
LogPosition PositionFromJson(const Json& json);

}  // namespace muster::ssh
