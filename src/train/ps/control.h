// Requests to one parameter server, each answered before the next.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "train/wire/transport.h"

namespace muster::train {

// Not thread-safe. After an error other than the server's own the connection is of no more use.
class PsControl {
 public:
  // `hello` introduces this task.
  static absl::StatusOr<std::unique_ptr<PsControl>> Connect(wire::Transport& transport,
                                                            const std::string& address,
                                                            wire::Frame hello,
                                                            absl::Duration timeout);
  ~PsControl();

  // DeadlineExceeded when no answer comes in time.
  absl::StatusOr<wire::Incoming> Call(wire::Outgoing request, absl::Duration timeout);
  absl::StatusOr<nlohmann::json> Status(absl::Duration timeout);

 private:
  explicit PsControl(std::unique_ptr<wire::Connection> connection);
  void Watch(const std::stop_token& stop);

  std::unique_ptr<wire::Connection> connection_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool expired_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread watchdog_;
};

// The error that a frame of kind ERROR carries.
absl::Status StatusOf(const wire::Frame& frame);

}  // namespace muster::train
