// The key-value store of an all-reduce job, in the memory of rank 0.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "train/wire/transport.h"
#include "train/wire/watchdog.h"

namespace muster::train {

// Thread-safe.
class KeyValue {
 public:
  virtual ~KeyValue() = default;
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  // Returns the value, nullopt if the key is not set, or Unavailable if rank 0 is lost.
  virtual absl::StatusOr<std::optional<std::string>> Get(const std::string& key) = 0;
};

class LocalKeyValue final : public KeyValue {
 public:
  absl::Status Set(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::optional<std::string>> Get(const std::string& key) override;

  // Serves another task's stream of requests until it ends.
  void Serve(wire::Connection& connection);

 private:
  wire::Outgoing Handle(const wire::Incoming& request);

  absl::Mutex mutex_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
};

class RemoteKeyValue final : public KeyValue {
 public:
  // `hello` identifies this task. Returns errors as Transport::Connect() and Admission::Admit().
  static absl::StatusOr<std::unique_ptr<RemoteKeyValue>> Connect(wire::Transport& transport,
                                                                 const std::string& address,
                                                                 wire::Frame hello,
                                                                 absl::Duration timeout);
  absl::Status Set(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::optional<std::string>> Get(const std::string& key) override;

 private:
  explicit RemoteKeyValue(std::unique_ptr<wire::Connection> connection)
      : connection_(std::move(connection)), watchdog_(*connection_) {}
  absl::StatusOr<wire::Incoming> Call(wire::Outgoing request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<wire::Incoming> Answer();

  absl::Mutex mutex_;  // one request at a time
  const std::unique_ptr<wire::Connection> connection_;
  wire::Watchdog watchdog_;
};

}  // namespace muster::train
