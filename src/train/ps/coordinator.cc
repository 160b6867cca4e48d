#include "train/ps/coordinator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "train/core/optimizer.h"
#include "train/core/waiting.h"

namespace muster::train {
namespace {

using wire::Frame;

// The limit of one ASSIGN or READ in the protocol: bounds the memory of a message on both sides.
constexpr int64_t kChunkBytes = 4 << 20;

std::string NameOf(size_t server) { return absl::StrCat("ps:", server); }

// Maps a timeout to Unavailable: a server that does not answer counts as lost, like one whose
// connection ended, and is joined again.
absl::Status LostOr(const absl::Status& status, size_t server) {
  absl::Status named = base::Annotate(status, NameOf(server));
  if (!absl::IsDeadlineExceeded(named)) return named;
  return absl::UnavailableError(named.message());
}

// Reads the snapshots that the servers keep, while training continues.
class PsSnapshot final : public Snapshot {
 public:
  // Reads one server's snapshot.
  struct Reader {
    std::unique_ptr<PsControl> control;
    int64_t number = 0;
  };
  PsSnapshot(nlohmann::json state, uint64_t generation, std::vector<Reader> readers,
             absl::Duration timeout)
      : state_(std::move(state)),
        generation_(generation),
        readers_(std::move(readers)),
        timeout_(timeout) {}

  const nlohmann::json& state() const override { return state_; }

  absl::Status Read(const Extent& extent, Area area,
                    absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> take) override {
    const Reader& reader = readers_[static_cast<size_t>(extent.server)];
    for (int64_t done = 0; done < extent.bytes; done += kChunkBytes) {
      wire::Outgoing request;
      request.frame.set_kind(Frame::READ);
      request.frame.set_generation(generation_);
      request.frame.set_sequence(reader.number);
      request.frame.set_area(static_cast<Frame::Area>(area));
      request.frame.set_offset(extent.offset + done);
      request.frame.set_count(std::min(kChunkBytes, extent.bytes - done));
      const auto data = reader.control->Call(std::move(request), timeout_);
      if (!data.ok()) return LostOr(data.status(), static_cast<size_t>(extent.server));
      for (const wire::Chunk& piece : data->payload.pieces()) {
        MUSTER_RETURN_IF_ERROR(take({static_cast<const std::byte*>(piece.data), piece.size}));
      }
    }
    return absl::OkStatus();
  }

 private:
  const nlohmann::json state_;
  const uint64_t generation_;
  const std::vector<Reader> readers_;
  const absl::Duration timeout_;
};

}  // namespace

PsCoordinator::PsCoordinator(wire::Transport& transport, Options options)
    : transport_(transport), options_(std::move(options)) {}

wire::Outgoing PsCoordinator::RequestOf(Frame::Kind kind) const {
  wire::Outgoing request;
  request.frame.set_kind(kind);
  request.frame.set_generation(generation_);
  return request;
}

absl::StatusOr<wire::Incoming> PsCoordinator::Call(size_t server, wire::Outgoing request) {
  auto answer = controls_[server]->Call(std::move(request), options_.call_timeout);
  if (!answer.ok()) return LostOr(answer.status(), server);
  return answer;
}

absl::Status PsCoordinator::ConnectAll(absl::Duration timeout) {
  Waiting waiting(timeout, options_.report_interval, options_.log);
  controls_.clear();
  while (controls_.size() < options_.addresses.size()) {
    const size_t server = controls_.size();
    auto control = PsControl::Connect(transport_, options_.addresses[server], options_.hello,
                                      std::min(wire::kConnectAttemptTimeout, waiting.left()));
    if (control.ok()) {
      controls_.push_back(*std::move(control));
      continue;
    }
    const absl::Status& status = control.status();
    const bool transient = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (!transient) return base::Annotate(status, NameOf(server));
    MUSTER_RETURN_IF_ERROR(waiting.Pause(absl::StrCat(
        NameOf(server), " (", options_.addresses[server], ": ", status.message(), ")")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PsStatus>> PsCoordinator::StatusOfAll() {
  std::vector<PsStatus> all;
  for (size_t server = 0; server < controls_.size(); ++server) {
    auto status = controls_[server]->Status(options_.call_timeout);
    if (!status.ok()) return LostOr(status.status(), server);
    all.push_back(*std::move(status));
  }
  return all;
}

absl::Status PsCoordinator::EnsureActive(FirstValues first, absl::Duration timeout) {
  MUSTER_RETURN_IF_ERROR(ConnectAll(timeout));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<PsStatus> all, StatusOfAll());
  bool active = true;
  uint64_t newest = 0;
  for (const PsStatus& status : all) {
    active = active && status.active && status.generation == all.front().generation;
    newest = std::max(newest, status.generation);
  }
  if (active) {
    generation_ = newest;
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<ValueSource> source, first());
  // Generations must increase even if every server was restarted and reports 0, and if this is a
  // new chief: the time in microseconds exceeds the numbers chosen earlier, and newest + 1 also
  // holds if the clock was set back.
  return Start(*source, std::max<uint64_t>(newest + 1, absl::ToUnixMicros(absl::Now())));
}

absl::Status PsCoordinator::Start(const ValueSource& first, uint64_t generation) {
  generation_ = generation;
  GenerationSpec spec = options_.spec;
  spec.generation = generation;
  spec.step = first.progress().step;
  spec.data = first.progress().data.ToJson();
  if (const auto cursors = first.cursors(); cursors.size() == spec.cursors.size()) {
    spec.cursors = cursors;
  }
  for (size_t server = 0; server < controls_.size(); ++server) {
    spec.counts_steps = server == 0;
    spec.shape = options_.plans[server].shape;
    wire::Outgoing prepare = RequestOf(Frame::PREPARE);
    prepare.frame.set_text(spec.ToJson().dump());
    MUSTER_RETURN_IF_ERROR(Call(server, std::move(prepare)).status());
  }
  // PREPARE has disconnected the tasks. They cannot join before ACTIVATE, so no task reads values
  // that are only partly assigned.
  const int slots = static_cast<int>(SlotNames(spec.optimizer).size());
  MUSTER_RETURN_IF_ERROR(AssignAll(
      first, options_.variables, options_.plans, slots,
      [&](const Extent& extent, Area area, absl::Span<const std::byte> bytes) -> absl::Status {
        for (size_t done = 0; done < bytes.size(); done += kChunkBytes) {
          const auto chunk = bytes.subspan(done, kChunkBytes);
          wire::Outgoing assign = RequestOf(Frame::ASSIGN);
          assign.frame.set_area(static_cast<Frame::Area>(area));
          assign.frame.set_offset(extent.offset + static_cast<int64_t>(done));
          assign.payload.push_back({chunk.data(), chunk.size(), nullptr});
          MUSTER_RETURN_IF_ERROR(
              Call(static_cast<size_t>(extent.server), std::move(assign)).status());
        }
        return absl::OkStatus();
      }));
  for (size_t server = 0; server < controls_.size(); ++server) {
    MUSTER_RETURN_IF_ERROR(Call(server, RequestOf(Frame::ACTIVATE)).status());
  }
  return absl::OkStatus();
}

// Called between two steps of the chief. In lockstep no bucket of any server can advance before the
// chief's next push, so the snapshots of all servers are of the same step. Otherwise updates go on
// and the parts may differ by the updates that arrive between the requests.
absl::StatusOr<std::unique_ptr<Snapshot>> PsCoordinator::TakeSnapshot() {
  nlohmann::json state;
  std::vector<PsSnapshot::Reader> readers(controls_.size());
  for (size_t server = 0; server < controls_.size(); ++server) {
    MUSTER_ASSIGN_OR_RETURN(const wire::Incoming answer, Call(server, RequestOf(Frame::SNAPSHOT)));
    readers[server].number = answer.frame.sequence();
    if (server > 0) continue;  // ps:0 counts the steps
    state = base::ParseJson(answer.frame.text());
    if (!state.is_object()) return absl::InternalError("ps:0 sent a snapshot without a step");
  }
  // Own connections: the snapshot is read by the saver's thread, while the chief uses controls_.
  for (size_t server = 0; server < readers.size(); ++server) {
    auto control = PsControl::Connect(transport_, options_.addresses[server], options_.hello,
                                      options_.call_timeout);
    if (!control.ok()) return LostOr(control.status(), server);
    readers[server].control = *std::move(control);
  }
  return std::make_unique<PsSnapshot>(std::move(state), generation_, std::move(readers),
                                      options_.call_timeout);
}

absl::Status PsCoordinator::EndAt(int64_t step) {
  for (size_t server = 0; server < controls_.size(); ++server) {
    wire::Outgoing limit = RequestOf(Frame::SET_LIMIT);
    limit.frame.set_version(step);
    MUSTER_RETURN_IF_ERROR(Call(server, std::move(limit)).status());
  }
  return absl::OkStatus();
}

absl::Status PsCoordinator::EndJob() {
  // Every server must get FINISH, also if another one is lost.
  absl::Status first;
  for (size_t server = 0; server < controls_.size(); ++server) {
    const absl::Status status = Call(server, RequestOf(Frame::FINISH)).status();
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace muster::train
