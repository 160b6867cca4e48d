// Framing and delivery of messages between supervisor and agent. docs/formats/agent.md lists them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/files/unique_fd.h"
#include "nlohmann/json.hpp"
#include "process/event_loop.h"

namespace muster::ssh {

using Json = nlohmann::json;

struct Message {
  Json head;         // an object
  std::string body;  // binary payload
};

// Marks the start of the stream. A login shell may print something before it.
inline constexpr char kPreface[] = "muster-agent ready\n";

// Returns a frame: a 4-byte length, the head as JSON text, a zero byte, the body.
std::string Encode(const Json& head, absl::string_view body = {});
// Returns a frame without its body, which the caller sends next and which has `body_size` bytes.
std::string EncodeHead(const Json& head, size_t body_size);

// Splits a byte stream into messages.
class Decoder {
 public:
  // Skips everything up to the end of the first `preface`.
  explicit Decoder(std::string preface = "") : preface_(std::move(preface)) {}

  void Add(absl::string_view bytes) { input_.append(bytes.data(), bytes.size()); }
  // Returns the next message, NotFound if it is not complete yet, or DataLoss if the stream is not
  // a sequence of messages.
  absl::StatusOr<Message> Next();

 private:
  std::string preface_;
  std::string input_;
  size_t taken_ = 0;
};

// Sends and receives messages on an event loop. Not thread-safe.
class Channel {
 public:
  struct Handler {
    std::function<void(Message message)> received;
    std::function<void()> closed;  // called once, by the loop; no call follows it
  };
  // Sets the descriptors to non-blocking. `loop` must outlive the channel. A handler may destroy
  // the channel. See Decoder::Decoder for `preface`.
  static absl::StatusOr<std::unique_ptr<Channel>> Open(process::EventLoop& loop, base::UniqueFd in,
                                                       base::UniqueFd out, Handler handler,
                                                       std::string preface = "");
  ~Channel();

  // Queues a message. Drops it if the connection is broken; Handler::closed reports that.
  void Send(const Json& head, absl::string_view body = {});
  // Returns the number of bytes that are queued.
  size_t unsent() const { return output_.size() - sent_; }
  // Returns the time of the last write to the connection, or InfinitePast if there was none. The
  // peer has received nothing that was written later.
  absl::Time last_write() const { return last_write_; }

 private:
  Channel(process::EventLoop& loop, base::UniqueFd in, base::UniqueFd out, Handler handler,
          std::string preface)
      : loop_(loop),
        in_(std::move(in)),
        out_(std::move(out)),
        handler_(std::move(handler)),
        decoder_(std::move(preface)) {}
  void OnReadable();
  void Flush();
  void Close();

  process::EventLoop& loop_;
  base::UniqueFd in_;
  base::UniqueFd out_;
  Handler handler_;
  Decoder decoder_;
  std::string output_;
  size_t sent_ = 0;
  absl::Time last_write_ = absl::InfinitePast();
  bool waits_to_write_ = false;
  bool broken_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Delivers messages exactly once and in order across reconnections. Each side has one, and keeps a
// message until the peer acknowledges it. Not thread-safe.
class ReliableOutbox {
 public:
  // Numbers and keeps the message, and sends it if a channel is attached.
  void Send(Json head);
  // Sends over `channel` from now on, first the messages after `seen`, the last one that the peer
  // received. `channel` must stay valid until Detach().
  void Attach(Channel* channel, int64_t seen);
  void Detach() { channel_ = nullptr; }
  // Processes the numbers of a received message. Returns false if it is a duplicate and must be
  // ignored.
  bool Take(const Json& head);
  // Sends an acknowledgement if messages were received since the last one.
  void Acknowledge();

  // Returns the number of the last message received.
  int64_t seen() const { return seen_; }
  // Returns true if the peer has acknowledged all messages.
  bool all_acknowledged() const { return kept_.empty(); }

 private:
  Channel* channel_ = nullptr;
  std::deque<std::pair<int64_t, Json>> kept_;
  int64_t last_ = 0;
  int64_t seen_ = 0;
  int64_t acknowledged_ = 0;
};

}  // namespace muster::ssh
