// JSON encoding of the messages about tasks between supervisor and agent. See
// docs/formats/agent.md.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "supervise/log_reader.h"
#include "supervise/runner.h"

namespace muster::ssh {

using Json = nlohmann::json;

// Return a member of a message from the peer, or an empty value if it is absent or of another type.
std::string TextAt(const Json& json, absl::string_view key);
int64_t NumberAt(const Json& json, absl::string_view key);
bool IsSet(const Json& json, absl::string_view key);

Json TimeToJson(absl::Time time);
absl::Time TimeAt(const Json& json, absl::string_view key);

Json StartToJson(const TaskStart& start);
absl::StatusOr<TaskStart> StartFromJson(const Json& json);

Json EndToJson(const AttemptEnd& end);
AttemptEnd EndFromJson(const Json& json);

// Encode the policies that agents apply: those on stalls and logs.
Json PoliciesToJson(const Policies& policies);
Policies PoliciesFromJson(const Json& json);

Json PositionToJson(const LogPosition& position);
LogPosition PositionFromJson(const Json& json);

}  // namespace muster::ssh
