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

PsControl::PsControl(std::unique_ptr<wire::Connection> connection)
    : connection_(std::move(connection)),
      watchdog_([this](const std::stop_token& stop) { Watch(stop); }) {}

PsControl::~PsControl() {
  watchdog_.request_stop();
  absl::MutexLock lock(&mutex_);
  changed_.Signal();
}

void PsControl::Watch(const std::stop_token& stop) {
  absl::MutexLock lock(&mutex_);
  while (!stop.stop_requested()) {
    changed_.WaitWithDeadline(&mutex_, deadline_);
    if (absl::Now() < deadline_) continue;
    deadline_ = absl::InfiniteFuture();
    expired_ = true;
    connection_->Cancel();
  }
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
  const auto arm = [this](absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    deadline_ = deadline;
    changed_.Signal();
    return !expired_;
  };
  arm(absl::Now() + timeout);
  absl::StatusOr<wire::Incoming> answer = absl::UnavailableError("the connection was lost");
  if (connection_->Send(std::move(request))) answer = connection_->Receive();
  if (!arm(absl::InfiniteFuture()) && !answer.ok()) {
    return absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
  }
  if (answer.ok() && answer->frame.kind() == Frame::ERROR) return StatusOf(answer->frame);
  return answer;
}

absl::StatusOr<nlohmann::json> PsControl::Status(absl::Duration timeout) {
  wire::Outgoing request;
  request.frame.set_kind(Frame::STATUS);
  MUSTER_ASSIGN_OR_RETURN(const wire::Incoming answer, Call(std::move(request), timeout));
  auto status = nlohmann::json::parse(answer.frame.text(), nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return absl::InternalError("the server's status is damaged");
  return status;
}

}  // namespace muster::train
