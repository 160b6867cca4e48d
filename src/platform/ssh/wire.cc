#include "platform/ssh/wire.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "platform/ssh/protocol.h"

namespace muster::ssh {
namespace {

constexpr size_t kMaxMessage = 16 << 20;
constexpr size_t kMaxNoise = 1 << 20;
constexpr size_t kMaxPerTurn = 4 << 20;  // keeps one busy host from starving the others

}  // namespace

std::string EncodeHead(const Json& head, size_t body_size) {
  const std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto length = static_cast<uint32_t>(text.size() + 1 + body_size);
  std::string encoded(sizeof(length), '\0');
  std::memcpy(encoded.data(), &length, sizeof(length));
  absl::StrAppend(&encoded, text, absl::string_view("\0", 1));
  return encoded;
}

std::string Encode(const Json& head, absl::string_view body) {
  return absl::StrCat(EncodeHead(head, body.size()), body);
}

absl::StatusOr<Message> Decoder::Next() {
  if (!preface_.empty()) {
    const size_t at = input_.find(preface_);
    if (at == std::string::npos && input_.size() > kMaxNoise) {
      return absl::DataLossError("the host's login shell prints too much before the agent starts");
    }
    if (at == std::string::npos) return absl::NotFoundError("not here yet");
    input_.erase(0, at + preface_.size());
    preface_.clear();
  }
  const absl::string_view rest = absl::string_view(input_).substr(taken_);
  uint32_t length = 0;
  if (rest.size() >= sizeof(length)) std::memcpy(&length, rest.data(), sizeof(length));
  if (length > kMaxMessage) return absl::DataLossError("invalid message from the host");
  if (rest.size() < sizeof(length) || rest.size() - sizeof(length) < length) {
    input_.erase(0, std::exchange(taken_, 0));
    return absl::NotFoundError("not here yet");
  }
  const absl::string_view text = rest.substr(sizeof(length), length);
  const size_t end = text.find('\0');
  Message message;
  if (end != absl::string_view::npos) {
    message.head = base::ParseJson(text.substr(0, end));
    message.body = std::string(text.substr(end + 1));
  }
  if (!message.head.is_object()) {
    return absl::DataLossError("invalid message from the host");
  }
  taken_ += sizeof(length) + length;
  return message;
}

absl::StatusOr<std::unique_ptr<Channel>> Channel::Open(process::EventLoop& loop, base::UniqueFd in,
                                                       base::UniqueFd out, Handler handler,
                                                       std::string preface) {
  for (const int fd : {in.get(), out.get()}) {
    if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
      return absl::ErrnoToStatus(errno, "fcntl");
    }
  }
  std::unique_ptr<Channel> channel(
      new Channel(loop, std::move(in), std::move(out), std::move(handler), std::move(preface)));
  MUSTER_RETURN_IF_ERROR(loop.AddFd(channel->in_.get(), EPOLLIN,
                                    [self = channel.get()](uint32_t) { self->OnReadable(); }));
  return channel;
}

Channel::~Channel() {
  *alive_ = false;
  if (in_.valid()) loop_.RemoveFd(in_.get());
  if (waits_to_write_) loop_.RemoveFd(out_.get());
}

void Channel::OnReadable() {
  std::array<char, 65536> buffer;
  // A handler may destroy this channel; the copy of alive_ outlives it.
  const std::shared_ptr<bool> alive = alive_;
  bool ended = false;
  for (size_t total = 0; total < kMaxPerTurn;) {
    const ssize_t n = ::read(in_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      ended = true;
      break;
    }
    decoder_.Add({buffer.data(), static_cast<size_t>(n)});
    total += static_cast<size_t>(n);
  }
  for (;;) {
    auto message = decoder_.Next();
    if (!message.ok()) {
      if (ended || absl::IsDataLoss(message.status())) Close();
      return;
    }
    handler_.received(*std::move(message));
    if (!*alive) return;
  }
}

void Channel::Send(const Json& head, absl::string_view body) {
  if (broken_) return;
  absl::StrAppend(&output_, Encode(head, body));
  if (!waits_to_write_) Flush();
}

void Channel::Flush() {
  while (sent_ < output_.size()) {
    const ssize_t n = ::write(out_.get(), output_.data() + sent_, output_.size() - sent_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      broken_ = true;  // the reader will see the end of the connection
      sent_ = output_.size();
      break;
    }
    sent_ += static_cast<size_t>(n);
    last_write_ = base::Clock::Real().Now();
  }
  if (sent_ == output_.size() || sent_ > kMaxPerTurn) output_.erase(0, std::exchange(sent_, 0));
  const bool waits = !output_.empty();
  if (waits == waits_to_write_) return;
  waits_to_write_ = waits;
  if (!waits) {
    loop_.RemoveFd(out_.get());
  } else if (!loop_.AddFd(out_.get(), EPOLLOUT, [this](uint32_t) { Flush(); }).ok()) {
    waits_to_write_ = false;
    broken_ = true;
  }
}

void Channel::Close() {
  loop_.RemoveFd(in_.get());
  in_.Reset();
  broken_ = true;
  const auto closed = std::move(handler_.closed);  // may destroy this object
  closed();
}

void ReliableOutbox::Send(Json head) {
  head["n"] = ++last_;
  if (channel_ != nullptr) channel_->Send(head);
  kept_.emplace_back(last_, std::move(head));
}

void ReliableOutbox::Attach(Channel* channel, int64_t seen) {
  channel_ = channel;
  acknowledged_ = seen_;
  while (!kept_.empty() && kept_.front().first <= seen) kept_.pop_front();
  for (const auto& [number, head] : kept_) channel_->Send(head);
}

bool ReliableOutbox::Take(const Json& head) {
  const int64_t taken = base::IntMember(head, "taken");
  while (!kept_.empty() && kept_.front().first <= taken) kept_.pop_front();
  const int64_t number = base::IntMember(head, "n");
  if (number == 0) return true;  // unnumbered: may be lost
  if (number <= seen_) return false;
  seen_ = number;
  return true;
}

void ReliableOutbox::Acknowledge() {
  if (channel_ == nullptr || acknowledged_ == seen_) return;
  acknowledged_ = seen_;
  channel_->Send({{"op", "taken"}, {"taken", seen_}});
}

}  // namespace muster::ssh
