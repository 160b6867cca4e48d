// JSON encoding of the messages about tasks between supervisor and agent. See
// docs/formats/agent.md.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "supervise/log/log_reader.h"
#include "supervise/runner.h"

namespace muster::ssh {

using Json = nlohmann::json;

// Times are microseconds since 1970. TimeMember() returns 1970 if the member is absent.
Json TimeToJson(absl::Time time);
absl::Time TimeMember(const Json& json, absl::string_view key);

Json StartToJson(const supervise::TaskStart& start);
absl::StatusOr<supervise::TaskStart> StartFromJson(const Json& json);

Json EndToJson(const supervise::AttemptEnd& end);
supervise::AttemptEnd EndFromJson(const Json& json);

// Encode the policies that agents apply: those on stalls and logs.
Json PoliciesToJson(const job::Policies& policies);
job::Policies PoliciesFromJson(const Json& json);

// `time` is that of the sender's clock. SampleFromJson() ignores values that are not valid.
Json SampleToJson(const supervise::Sample& sample);
supervise::Sample SampleFromJson(const Json& json);

Json PositionToJson(const supervise::LogPosition& position);
supervise::LogPosition PositionFromJson(const Json& json);

}  // namespace muster::ssh
