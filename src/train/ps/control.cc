#include "train/ps/control.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace muster::train {

using wire::Frame;

absl::Status StatusOf(const Frame& frame) {
  const auto code = static_cast<absl::StatusCode>(frame.code());
  return {code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code, frame.text()};
}

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
    return absl::InternalError("the server's status is damaged");
  }
  return status;
}

absl::StatusOr<std::unique_ptr<PsControl>> PsControl::Connect(wire::Transport& transport,
                                                              const std::string& address,
                                                              Frame hello, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MUSTER_ASSIGN_OR_RETURN(auto connection, transport.Connect(address, timeout));
  std::unique_ptr<PsControl> control(new PsControl(std::move(connection)));
  hello.set_kind(Frame::HELLO);
  hello.set_control(true);
  MUSTER_RETURN_IF_ERROR(control->Call({std::move(hello)}, deadline - absl::Now()).status());
  return control;
}

absl::StatusOr<wire::Incoming> PsControl::Call(wire::Outgoing request, absl::Duration timeout) {
  watchdog_.Arm(absl::Now() + timeout);
  connection_->Send(std::move(request));  // when that fails, the answer says why
  absl::StatusOr<wire::Incoming> answer = connection_->Receive();
  if (!watchdog_.Disarm() && !answer.ok()) {
    return absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
  }
  if (answer.ok() && answer->frame.kind() == Frame::ERROR) return StatusOf(answer->frame);
  return answer;
}

absl::StatusOr<PsStatus> PsControl::Status(absl::Duration timeout) {
  wire::Outgoing request;
  request.frame.set_kind(Frame::STATUS);
  MUSTER_ASSIGN_OR_RETURN(const wire::Incoming answer, Call(std::move(request), timeout));
  return PsStatus::FromJson(
      nlohmann::json::parse(answer.frame.text(), nullptr, /*allow_exceptions=*/false));
}

}  // namespace muster::train
