// Follows a job at Vertex AI: what becomes of it, and what its tasks print. Nobody tells: it asks.
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
#include "launch/log_writer.h"
#include "launch/platform.h"
#include "launch/vertex/client.h"
#include "launch/vertex/pools.h"

namespace muster::vertex {

// Entries come this late at times: those that are younger are left for the next time.
inline constexpr absl::Duration kLogDelay = absl::Seconds(5);
// Who follows a job waits for so long for what it said last.
inline constexpr absl::Duration kLastWords = absl::Seconds(10);
// Nothing more comes when a job has been over for so long; until then who looks at its output asks
// for what came late.
inline constexpr absl::Duration kSettled = absl::Minutes(5);
inline constexpr absl::Duration kDefaultInterval = absl::Seconds(30);

// Which job, and where its output goes.
struct FollowOptions {
  std::string job;      // its resource name
  std::string project;  // whose log it is in
  Pools pools;
  std::string logs;  // a folder
  LogWriter::Options log;
  absl::Duration interval = kDefaultInterval;     // between two looks at the output
  std::function<void(const absl::Status&)> warn;  // of output that could not be fetched
};

// Copies what its tasks have printed by now. `ended`: when the job ended; true when who follows it
// need not wait any longer. False: somebody else copies it, or there may be more.
absl::StatusOr<bool> CopyOutput(Client& client, const FollowOptions& options,
                                std::optional<absl::Time> ended, const std::stop_token& stop = {});
// Whether all of it is here, and nobody need ask any more.
bool IsWhole(const FollowOptions& options);

class Follower final : public JobWatch {
 public:
  // `client` outlives it.
  static absl::StatusOr<std::unique_ptr<Follower>> Start(Client& client, FollowOptions options);
  ~Follower() override;

  int fd() const override { return signal_.get(); }
  bool Drain() override;

 private:
  Follower(Client& client, FollowOptions options, EventFd signal)
      : client_(client), options_(std::move(options)), signal_(std::move(signal)) {}
  void Work(const std::stop_token& stop);
  // Whether the job is over, and all of its output is here.
  bool Look(const std::stop_token& stop);
  void Wait(absl::Duration delay);

  Client& client_;
  const FollowOptions options_;
  const EventFd signal_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // to be told by who drains: he has the terminal
  // Of the thread alone.
  absl::Time copy_at_ = absl::InfinitePast();
  absl::Time give_up_at_ = absl::InfiniteFuture();
  bool told_ = false;  // that output could not be fetched, since it could be
  std::jthread thread_;
};

}  // namespace muster::vertex
