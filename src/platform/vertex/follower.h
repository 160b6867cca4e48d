// Follows a job on Vertex AI: its state and the output of its tasks. Vertex AI sends no
// notifications, so the follower polls.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event_fd.h"
#include "platform/platform.h"
#include "platform/vertex/client.h"
#include "platform/vertex/pools.h"
#include "supervise/log/log_writer.h"

namespace muster::vertex {

// Usual delay of log entries. Younger entries are left for the next poll.
inline constexpr absl::Duration kLogDelay = absl::Seconds(5);
// Time that a follower waits for the last output after the job has ended.
inline constexpr absl::Duration kFinalOutputTimeout = absl::Seconds(10);
// Late entries may arrive until this long after the end of a job. Output is requested again until
// then.
inline constexpr absl::Duration kSettleTime = absl::Minutes(5);
inline constexpr absl::Duration kDefaultInterval = absl::Seconds(30);

// The job to follow and the destination of its output.
struct FollowOptions {
  std::string job;      // resource name
  std::string project;  // project of the log
  Pools pools;
  std::string logs;  // directory of the logs
  supervise::LogWriter::Options log;
  absl::Duration interval = kDefaultInterval;     // between two requests for output
  std::function<void(const absl::Status&)> warn;  // called when output cannot be fetched
};

// Copies the output that the tasks have produced so far. `ended` is the end of the job, if it has
// ended. Returns true if a follower need not wait for more; false if there may be more or another
// copier holds the lock of the logs.
absl::StatusOr<bool> CopyOutput(Client& client, const FollowOptions& options,
                                std::optional<absl::Time> ended, const std::stop_token& stop = {});
// Returns true if all output is copied and no request is needed any more.
bool IsFullyCopied(const FollowOptions& options);

// Public methods are called from one thread.
class Follower final : public platform::JobWatch {
 public:
  // `client` must outlive the result.
  static absl::StatusOr<std::unique_ptr<Follower>> Start(Client& client, FollowOptions options);
  ~Follower() override;

  int fd() const override { return signal_.get(); }
  bool Drain() override;

 private:
  Follower(Client& client, FollowOptions options, base::EventFd signal)
      : client_(client), options_(std::move(options)), signal_(std::move(signal)) {}
  // Body of thread_.
  void Work(const std::stop_token& stop);
  // Polls once. Returns true if the job has ended and its output is copied or given up.
  bool Poll(const std::stop_token& stop);
  void Wait(absl::Duration delay);

  Client& client_;
  const FollowOptions options_;
  const base::EventFd signal_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Reported by Drain(), whose caller owns the terminal.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Used by thread_ only.
  absl::Time copy_at_ = absl::InfinitePast();
  absl::Time give_up_at_ = absl::InfiniteFuture();
  bool failure_reported_ = false;  // failure_ was set since output could last be fetched
  std::jthread thread_;
};

}  // namespace muster::vertex
