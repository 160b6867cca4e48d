// A training task's client of the parameter servers: pushes gradients, receives values.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "train/core/placement.h"
#include "train/core/waiting.h"
#include "train/ps/control.h"
#include "train/ps/push_codec.h"
#include "train/wire/outbox.h"
#include "train/wire/transport.h"

namespace muster::train {

// Where a task resumes.
struct Position {
  uint64_t generation = 0;
  int64_t step = 0;      // completed steps of the job
  int64_t sequence = 0;  // batches that this task has contributed
  int64_t limit = 0;     // the step at which the job ends
  nlohmann::json data;   // DataOrigin of the job
};

// Push may be called while another thread waits; all other calls must come from one thread.
class PsClient {
 public:
  struct Options {
    wire::Frame hello;                   // identifies this task
    std::vector<std::string> addresses;  // of the servers, by index
    std::vector<ShardShape> shapes;
    bool shared_steps = true;   // sync
    bool owns_buffers = false;  // the chief
    absl::Duration report_interval = absl::Seconds(10);
    absl::Duration peer_timeout = absl::Minutes(30);  // waiting for others after Join
    std::function<void(const std::string&)> log;
    // Receives new values. Called concurrently from several threads, for different buckets.
    std::function<void(int server, int bucket, const wire::Payload& values)> receive;
  };
  PsClient(wire::Transport& transport, Options options);
  ~PsClient();

  // Joins all servers; also rejoins after an error. Waits until all of them are active in one
  // generation. Returns DeadlineExceeded after `timeout`, its message naming the peer that is
  // missing. Any other error is final.
  absl::StatusOr<Position> Join(absl::Duration timeout);

  // Requests all values of `version` and waits for them.
  absl::Status PullAll(int64_t version);

  // Begins a step. sync: the next pushes were computed from `version`. async, bounded: they are
  // this task's `sequence`-th.
  void Begin(int64_t version, int64_t sequence);
  void Push(int server, int bucket, EncodedPush push);
  // Waits for the new values of every bucket. Returns Cancelled if the job ends first (see
  // limit()); Aborted or Unavailable if a server was lost (call Join again); DeadlineExceeded,
  // naming the peers, if others have not contributed within `peer_timeout`.
  absl::Status Wait();
  int64_t limit() const { return limit_; }
  // Returns the oldest version among the values received in this step. With backup tasks it may be
  // ahead of this task's step.
  int64_t reached() const;

  // Waits until the chief has ended the job. Returns errors as Wait().
  absl::Status AwaitEnd();

  // async, bounded: waits until a step is granted. Returns false if the job is complete.
  absl::StatusOr<bool> Claim();
  // Returns the steps that the job had completed at the last Claim().
  int64_t granted_step() const { return granted_step_; }

  // Returns the values of `rows` of a table from the server that holds them.
  absl::StatusOr<wire::Payload> PullRows(int server, int bucket, int64_t version,
                                         const std::vector<int64_t>& rows);

 private:
  // Members are destroyed in reverse order: the receiver and the outbox, whose threads use the
  // connection, end before it. REQUIRES: the connection was cancelled, or the receiver does not
  // end.
  struct Link {
    std::unique_ptr<wire::Connection> connection;
    std::unique_ptr<wire::Outbox> outbox;
    std::jthread receiver;
  };
  struct Welcome {
    Position position;
    bool active = false;
  };

  absl::StatusOr<Welcome> Connect(int server, const Waiting& waiting);
  static absl::StatusOr<Welcome> AwaitWelcome(wire::Connection& connection);
  absl::StatusOr<std::optional<Position>> TryJoin(const Waiting& waiting, std::string& missing);
  void Start(const Position& position);
  void Disconnect();
  void ReceiveFrom(int server);
  void Handle(int server, wire::Incoming message);
  // Returns whether VALUES of this size are valid for the bucket. An acknowledgement is empty.
  bool Fits(int server, int bucket, size_t bytes) const;
  void HandleValues(int server, const wire::Incoming& message);
  void CancelAtLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Expect(int64_t version, bool tables, bool buffers);
  // Waits until `ready` holds; logs the `missing` peers at intervals.
  absl::Status Await(const absl::Condition& ready, absl::FunctionRef<std::string()> missing);
  absl::Status Await(const char* what);
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !status_.ok() || pending_ == 0;
  }
  bool Ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !status_.ok() || finished_; }
  std::string MissingPeers();
  void Fail(absl::Status status);
  wire::Frame FrameOf(wire::Frame::Kind kind, int bucket) const;

  wire::Transport& transport_;
  const Options options_;
  std::vector<Link> links_;
  // Written while no receiver and no backward pass runs: in Join() and Begin(). The receivers also
  // use the atomics below.
  uint64_t generation_ = 0;
  int64_t sequence_ = 0;
  std::atomic<int64_t> version_{0};
  std::atomic<int64_t> limit_{0};
  std::atomic<int64_t> granted_step_{0};

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t expected_ ABSL_GUARDED_BY(mutex_) = -1;  // the version that Wait() waits for
  std::optional<int64_t> reached_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<bool>> due_ ABSL_GUARDED_BY(mutex_);  // by server and bucket
  int pending_ ABSL_GUARDED_BY(mutex_) = 0;                     // answers outstanding
  std::optional<wire::Payload> rows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::train
