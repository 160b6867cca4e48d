#include "train/wire/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bytes/digest.h"
#include "base/clock.h"
#include "train/wire/watchdog.h"

namespace muster::train::wire {
namespace {

// A task has one stream, a control stream while it waits, and streams of an earlier attempt whose
// loss has not been detected yet. The chief also reads snapshots.
constexpr int64_t kMaxStreamsPerTask = 4;
constexpr int64_t kMaxOtherStreams = 8;
// Bounds what an unauthorized client can write to the log.
constexpr absl::Duration kLogInterval = absl::Seconds(10);
// Bounds how long an unauthorized client that reads nothing occupies a thread and its messages.
constexpr absl::Duration kRefusalTimeout = absl::Seconds(5);

}  // namespace

Admission::Admission(Options options)
    : options_(std::move(options)),
      cluster_digest_(base::Sha256Hex(options_.cluster)),
      streams_(std::make_shared<int>(0)) {}

void Admission::LogRefusal(const std::string& line) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = base::Clock::Real().Now();
    if (now < next_log_) return;
    next_log_ = now + kLogInterval;
  }
  options_.log(line);
}

absl::StatusOr<Admission::Permit> Admission::Admit(const Caller& caller) {
  const std::string self = options_.self.ToString();
  if (caller.hello.kind() != Frame::HELLO) {
    return absl::InvalidArgumentError("the peer does not speak Muster's protocol");
  }
  if (caller.hello.cluster() != cluster_digest_) {
    LogRefusal(absl::StrCat("refused a task of another cluster at ", caller.address,
                            "; this task's is ", options_.cluster));
    return absl::FailedPreconditionError(
        absl::StrCat(self,
                     " belongs to another cluster (see its log); start all tasks with the same "
                     "TF_CONFIG"));
  }
  const Peer& peer = caller.hello.peer();
  const cluster::TaskId task{peer.role(), static_cast<int>(peer.index())};
  const auto found = std::find(options_.tasks.begin(), options_.tasks.end(), task);
  if (found == options_.tasks.end()) {
    return absl::NotFoundError(
        absl::StrCat(task.ToString(), " is not a training task of this cluster"));
  }
  const int64_t limit =
      kMaxStreamsPerTask * static_cast<int64_t>(options_.tasks.size()) + kMaxOtherStreams;
  absl::MutexLock lock(&mutex_);
  if (streams_.use_count() > limit) {  // one owner is this object
    return absl::UnavailableError(
        absl::StrCat(self, " serves ", limit, " streams, the maximum; retry later"));
  }
  return Permit{static_cast<int>(found - options_.tasks.begin()), streams_};
}

Outgoing ErrorOf(const absl::Status& status) {
  Outgoing error;
  error.frame.set_kind(Frame::ERROR);
  error.frame.set_code(static_cast<int>(status.code()));
  error.frame.set_text(std::string(status.message()));
  return error;
}

void Refuse(Connection& connection, const absl::Status& status) {
  Watchdog watchdog(connection);
  watchdog.Arm(base::Clock::Real().Now() + kRefusalTimeout);
  connection.Send(ErrorOf(status));
}

absl::Status StatusOf(const Frame& frame) {
  const auto code = static_cast<absl::StatusCode>(frame.code());
  return {code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code, frame.text()};
}

}  // namespace muster::train::wire
