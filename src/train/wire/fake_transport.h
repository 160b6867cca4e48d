// A transport within one process, for tests: real threads, queues instead of sockets. Payloads are
// read from the sender's memory only when received, as late as a network might.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "train/wire/transport.h"

namespace muster::train::wire {

class FakeListener;
class FakeStream;

// Must outlive its listeners and connections.
class FakeTransport final : public Transport {
 public:
  absl::StatusOr<std::unique_ptr<Connection>> Connect(const std::string& address,
                                                      const Frame& hello,
                                                      absl::Duration timeout) override;
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address,
                                                   StreamHandler serve) override;

  // Cuts every stream to that address, as a network failure does.
  void Cut(const std::string& address);
  // Delays each message by a random time of at most `jitter`.
  void set_jitter(absl::Duration jitter);

 private:
  friend class FakeListener;

  FakeListener* FindListener(const std::string& address) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, FakeListener*> listeners_ ABSL_GUARDED_BY(mutex_);
  absl::Duration jitter_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train::wire
