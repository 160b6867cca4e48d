// Messages between a supervisor and the agents on its hosts. docs/formats/agent.md lists them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "nlohmann/json.hpp"
#include "process/event_loop.h"

namespace muster::ssh {

using Json = nlohmann::json;

struct Message {
  Json head;         // an object
  std::string body;  // bytes that go with it
};

// What a host says first: a login shell may print something before that.
inline constexpr char kPreface[] = "muster-agent ready\n";

// A length of four bytes, the head as text, a zero byte, the body.
std::string Encode(const Json& head, absl::string_view body = {});
// All of it but the body, which has so many bytes.
std::string EncodeHead(const Json& head, size_t body_size);

// Cuts a stream into messages.
class Decoder {
 public:
  // What stands before `preface`, and the preface itself, is skipped.
  explicit Decoder(std::string preface = "") : preface_(std::move(preface)) {}

  void Add(absl::string_view bytes) { input_.append(bytes.data(), bytes.size()); }
  // NotFound when the next one is not here yet; DataLoss when what comes is no message.
  absl::StatusOr<Message> Next();

 private:
  std::string preface_;
  std::string input_;
  size_t taken_ = 0;
};

// Both directions of a connection, on a loop. Not thread-safe.
class Channel {
 public:
  struct Handler {
    std::function<void(Message message)> received;
    std::function<void()> closed;  // told once, by the loop; nothing comes after it
  };
  // The descriptors are set not to block; `loop` must outlive it. It may be destroyed by a handler.
  // Decoder::Decoder says what the preface is.
  static absl::StatusOr<std::unique_ptr<Channel>> Open(EventLoop& loop, UniqueFd in, UniqueFd out,
                                                       Handler handler, std::string preface = "");
  ~Channel();

  void Send(const Json& head, absl::string_view body = {});
  size_t unsent() const { return output_.size() - sent_; }

 private:
  Channel(EventLoop& loop, UniqueFd in, UniqueFd out, Handler handler, std::string preface)
      : loop_(loop),
        in_(std::move(in)),
        out_(std::move(out)),
        handler_(std::move(handler)),
        decoder_(std::move(preface)) {}
  void OnReadable();
  void Flush();
  void Close();

  EventLoop& loop_;
  UniqueFd in_;
  UniqueFd out_;
  Handler handler_;
  Decoder decoder_;
  std::string output_;
  size_t sent_ = 0;
  bool waits_to_write_ = false;
  bool broken_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// What must arrive, once and in order, though connections come and go. Each side has one; a message
// is kept until the other side has said that it took it.
class Ledger {
 public:
  // Numbers and keeps it, and sends it when there is a channel.
  void Send(Json head);
  // From now on messages go there. `seen` is the number of the last one that the other side took:
  // those after it are sent again.
  void Attach(Channel* channel, int64_t seen);
  void Detach() { channel_ = nullptr; }
  // Whether the message is to be acted on: it is not when it was taken before.
  bool Take(const Json& head);
  // Tells the other side what was taken.
  void Acknowledge();

  int64_t seen() const { return seen_; }
  bool all_taken() const { return kept_.empty(); }

 private:
  Channel* channel_ = nullptr;
  std::deque<std::pair<int64_t, Json>> kept_;
  int64_t last_ = 0;
  int64_t seen_ = 0;
  int64_t acknowledged_ = 0;
};

}  // namespace muster::ssh
