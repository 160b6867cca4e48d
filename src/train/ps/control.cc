#include "train/ps/control.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "train/core/waiting.h"
#include "train/wire/admission.h"

namespace muster::train {

using wire::Frame;

nlohmann::json PsStatus::ToJson() const {
  return {{"active", active},
          {"generation", generation},
          {"step", step},
          {"connected", connected},
          {"missing", missing}};
}

absl::StatusOr<PsStatus> PsStatus::FromJson(const nlohmann::json& json) {
  PsStatus status;
  try {
    status.active = json.at("active");
    status.generation = json.at("generation");
    status.step = json.at("step");
    status.connected = json.at("connected");
    status.missing = json.at("missing").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    return absl::InternalError("the server sent a malformed status");
  }
  return status;
}

absl::StatusOr<std::unique_ptr<PsControl>> PsControl::Connect(wire::Transport& transport,
                                                              const std::string& address,
                                                              Frame hello, absl::Duration timeout) {
  const absl::Time deadline = base::Clock::Real().Now() + timeout;
  hello.set_kind(Frame::HELLO);
  hello.set_control(true);
  MUSTER_ASSIGN_OR_RETURN(auto connection, transport.Connect(address, hello, timeout));
  std::unique_ptr<PsControl> control(new PsControl(std::move(connection)));
  control->watchdog_.Arm(deadline);
  MUSTER_RETURN_IF_ERROR(control->Answer(timeout).status());
  return control;
}

absl::StatusOr<wire::Incoming> PsControl::Call(wire::Outgoing request, absl::Duration timeout) {
  watchdog_.Arm(base::Clock::Real().Now() + timeout);
  connection_->Send(std::move(request));  // if it fails, Receive() returns the reason
  return Answer(timeout);
}

absl::StatusOr<wire::Incoming> PsControl::Answer(absl::Duration timeout) {
  absl::StatusOr<wire::Incoming> answer = connection_->Receive();
  // The watchdog may expire just after the answer was received: the answer counts then.
  if (!watchdog_.Disarm() && !answer.ok()) return NoAnswer(timeout);
  if (answer.ok() && answer->frame.kind() == Frame::ERROR) return wire::StatusOf(answer->frame);
  return answer;
}

absl::StatusOr<PsStatus> PsControl::Status(absl::Duration timeout) {
  wire::Outgoing request;
  request.frame.set_kind(Frame::STATUS);
  MUSTER_ASSIGN_OR_RETURN(const wire::Incoming answer, Call(std::move(request), timeout));
  return PsStatus::FromJson(base::ParseJson(answer.frame.text()));
}

}  // namespace muster::train
