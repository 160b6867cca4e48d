#include "train/collective/key_value.h"

#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "train/wire/admission.h"

namespace muster::train {
namespace {

using wire::Frame;

// As for a control request of a parameter server.
constexpr absl::Duration kCallTimeout = absl::Seconds(60);
// Bounds the memory that a peer can occupy. Gloo's largest value has 136 bytes per task.
constexpr size_t kMaxValueBytes = 4 << 20;

wire::Outgoing MessageOf(Frame::Kind kind, const std::string& text, const std::string& payload) {
  wire::Outgoing message;
  message.frame.set_kind(kind);
  message.frame.set_text(text);
  auto bytes = std::make_shared<const std::string>(payload);
  message.payload.push_back({bytes->data(), bytes->size(), bytes});
  return message;
}

std::string Text(const wire::Payload& payload) {
  std::string text(payload.size(), '\0');
  payload.Copy(0, text.size(), text.data());
  return text;
}

}  // namespace

absl::Status LocalKeyValue::Set(const std::string& key, const std::string& value) {
  absl::MutexLock lock(&mutex_);
  values_[key] = value;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> LocalKeyValue::Get(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

wire::Outgoing LocalKeyValue::Handle(const wire::Incoming& request) {
  const std::string& key = request.frame.text();
  switch (request.frame.kind()) {
    case Frame::SET:
      if (request.payload.size() > kMaxValueBytes) {
        return wire::ErrorOf(absl::InvalidArgumentError(absl::StrCat(
            "value too large: ", request.payload.size(), " bytes, at most ", kMaxValueBytes)));
      }
      Set(key, Text(request.payload)).IgnoreError();
      return MessageOf(Frame::OK, "", "");
    case Frame::GET: {
      const auto value = Get(key);
      wire::Outgoing data = MessageOf(Frame::DATA, "", value.ok() ? value->value_or("") : "");
      data.frame.set_active(value.ok() && value->has_value());
      return data;
    }
    default:
      return wire::ErrorOf(absl::InvalidArgumentError("a store stream accepts only SET and GET"));
  }
}

void LocalKeyValue::Serve(wire::Connection& connection) {
  if (!connection.Send(MessageOf(Frame::OK, "", ""))) return;
  for (;;) {
    const auto request = connection.Receive();
    if (!request.ok() || !connection.Send(Handle(*request))) return;
  }
}

absl::StatusOr<std::unique_ptr<RemoteKeyValue>> RemoteKeyValue::Connect(wire::Transport& transport,
                                                                        const std::string& address,
                                                                        Frame hello,
                                                                        absl::Duration timeout) {
  hello.set_kind(Frame::HELLO);
  hello.set_service(Frame::STORE);
  MUSTER_ASSIGN_OR_RETURN(auto connection, transport.Connect(address, hello, timeout));
  std::unique_ptr<RemoteKeyValue> remote(new RemoteKeyValue(std::move(connection)));
  remote->watchdog_.Arm(base::Clock::Real().Now() + kCallTimeout);
  MUSTER_RETURN_IF_ERROR(remote->Answer().status());
  return remote;
}

absl::StatusOr<wire::Incoming> RemoteKeyValue::Answer() {
  absl::StatusOr<wire::Incoming> answer = connection_->Receive();
  watchdog_.Disarm();
  if (!answer.ok()) return absl::UnavailableError("the connection to rank 0 was lost");
  if (answer->frame.kind() == Frame::ERROR) return wire::StatusOf(answer->frame);
  return answer;
}

absl::StatusOr<wire::Incoming> RemoteKeyValue::Call(wire::Outgoing request) {
  absl::MutexLock lock(&mutex_);
  watchdog_.Arm(base::Clock::Real().Now() + kCallTimeout);
  connection_->Send(std::move(request));  // if it fails, Receive() returns the reason
  return Answer();
}

absl::Status RemoteKeyValue::Set(const std::string& key, const std::string& value) {
  return Call(MessageOf(Frame::SET, key, value)).status();
}

absl::StatusOr<std::optional<std::string>> RemoteKeyValue::Get(const std::string& key) {
  MUSTER_ASSIGN_OR_RETURN(const wire::Incoming answer, Call(MessageOf(Frame::GET, key, "")));
  if (!answer.frame.active()) return std::nullopt;
  return Text(answer.payload);
}

}  // namespace muster::train
