#include "train/wire/fake_transport.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace muster::train::wire {
namespace {

// The capacity of a stream, like that of a socket's buffers.
constexpr size_t kMaxWaiting = 8;

Incoming Gather(const Outgoing& message) {
  Incoming incoming;
  incoming.frame = message.frame;
  size_t size = 0;
  for (const Chunk& chunk : message.payload) size += chunk.size;
  if (size == 0) return incoming;
  std::shared_ptr<std::byte> copy(static_cast<std::byte*>(std::malloc(size)), std::free);
  size_t at = 0;
  for (const Chunk& chunk : message.payload) {
    if (chunk.size > 0) std::memcpy(copy.get() + at, chunk.data, chunk.size);
    at += chunk.size;
  }
  incoming.payload = Payload({{copy.get(), size, copy}});
  return incoming;
}

void SleepUpTo(absl::Duration longest) {
  if (longest <= absl::ZeroDuration()) return;
  thread_local std::mt19937 random(std::random_device{}());
  absl::SleepFor(longest * std::uniform_real_distribution<double>()(random));
}

}  // namespace

// One stream: both directions.
class FakeStream {
 public:
  explicit FakeStream(absl::Duration jitter) : jitter_(jitter) {}

  bool Send(int side, Outgoing message) {
    absl::MutexLock lock(&mutex_);
    std::deque<Outgoing>& queue = queues_[side];
    const auto room = [&] { return cancelled_ || ended_ || queue.size() < kMaxWaiting; };
    mutex_.Await(absl::Condition(&room));
    if (cancelled_ || ended_) return false;
    queue.push_back(std::move(message));
    return true;
  }
  absl::StatusOr<Incoming> Receive(int side) {
    SleepUpTo(jitter_);
    absl::MutexLock lock(&mutex_);
    std::deque<Outgoing>& queue = queues_[1 - side];
    const auto ready = [&] { return cancelled_ || ended_ || !queue.empty(); };
    mutex_.Await(absl::Condition(&ready));
    if (cancelled_ || queue.empty()) return absl::UnavailableError("the connection was lost");
    Incoming incoming = Gather(queue.front());
    queue.pop_front();
    return incoming;
  }
  void Cancel() {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    for (auto& queue : queues_) queue.clear();
  }
  // Messages sent before remain receivable.
  void End() {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }

 private:
  const absl::Duration jitter_;
  absl::Mutex mutex_;
  std::deque<Outgoing> queues_[2] ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

namespace {

constexpr int kClient = 0;
constexpr int kServer = 1;

class FakeConnection final : public Connection {
 public:
  FakeConnection(std::shared_ptr<FakeStream> stream, int side)
      : stream_(std::move(stream)), side_(side) {}
  // As in gRPC: a client that drops a stream cancels it, while the replies of a server that returns
  // are still delivered.
  ~FakeConnection() override { side_ == kClient ? stream_->Cancel() : stream_->End(); }

  bool Send(Outgoing message) override { return stream_->Send(side_, std::move(message)); }
  absl::StatusOr<Incoming> Receive() override { return stream_->Receive(side_); }
  void Cancel() override { stream_->Cancel(); }

 private:
  const std::shared_ptr<FakeStream> stream_;
  const int side_;
};

}  // namespace

class FakeListener final : public Listener {
 public:
  FakeListener(FakeTransport& transport, std::string address, StreamHandler serve)
      : transport_(transport), address_(std::move(address)), serve_(std::move(serve)) {}
  ~FakeListener() override {
    {
      absl::MutexLock lock(&transport_.mutex_);
      transport_.listeners_.erase(address_);
      Cut();
    }
    // Joined without the mutex: a handler may be in Connect(), which needs it.
    threads_.clear();
  }

  // REQUIRES: the transport's mutex held, as for Cut().
  void Accept(const std::shared_ptr<FakeStream>& stream, const Frame& hello) {
    streams_.push_back(stream);
    threads_.emplace_back([this, stream, caller = Caller{hello, "fake"}] {
      FakeConnection connection(stream, kServer);
      serve_(connection, caller);
    });
  }
  void Cut() {
    for (const auto& stream : streams_) stream->Cancel();
    streams_.clear();
  }

 private:
  FakeTransport& transport_;
  const std::string address_;
  const StreamHandler serve_;
  std::vector<std::shared_ptr<FakeStream>> streams_;
  std::vector<std::jthread> threads_;
};

FakeListener* FakeTransport::FindListener(const std::string& address) const {
  const auto found = listeners_.find(address);
  return found == listeners_.end() ? nullptr : found->second;
}

absl::StatusOr<std::unique_ptr<Connection>> FakeTransport::Connect(const std::string& address,
                                                                   const Frame& hello,
                                                                   absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto listens = [&] {
    mutex_.AssertHeld();
    return FindListener(address) != nullptr;
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&listens), timeout)) {
    return absl::UnavailableError(absl::StrCat("cannot connect to ", address));
  }
  auto stream = std::make_shared<FakeStream>(jitter_);
  FindListener(address)->Accept(stream, hello);
  return std::make_unique<FakeConnection>(stream, kClient);
}

absl::StatusOr<std::unique_ptr<Listener>> FakeTransport::Listen(const std::string& address,
                                                                StreamHandler serve) {
  absl::MutexLock lock(&mutex_);
  if (FindListener(address) != nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot listen at ", address));
  }
  auto listener = std::make_unique<FakeListener>(*this, address, std::move(serve));
  listeners_[address] = listener.get();
  return listener;
}

void FakeTransport::Cut(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  if (FakeListener* listener = FindListener(address)) listener->Cut();
}

void FakeTransport::set_jitter(absl::Duration jitter) {
  absl::MutexLock lock(&mutex_);
  jitter_ = jitter;
}

}  // namespace muster::train::wire
