// A step over parameter servers:
//
//    Begin        sync: checks the limit; else CLAIM and GRANT. Pulls the rows that the batch uses
//    OnGradient   pushes each bucket whose gradients are complete, during backward
//    Finish       pushes the rest, tables and (the chief) buffers; waits for all new values
//
// New values arrive in the inactive memory of the Replica while backward still uses the active one;
// Advance() swaps them once all have arrived.
#include "train/torch/exchange/ps_exchange.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "train/core/waiting.h"
#include "train/ps/push_codec.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

// The timeout of one attempt to join, after which is_over() is checked. Longer than
// kReportInterval, so that each attempt logs the missing peer.
constexpr absl::Duration kJoinAttemptTimeout = absl::Seconds(6);
constexpr absl::Duration kReportInterval = absl::Seconds(5);

std::vector<ShardShape> ShapesOf(const std::vector<ShardPlan>& plans) {
  std::vector<ShardShape> shapes;
  for (const ShardPlan& plan : plans) shapes.push_back(plan.shape);
  return shapes;
}

void AddRows(const torch::Tensor& rows, std::set<int64_t>& to) {
  const torch::Tensor flat = rows.contiguous().view(-1);
  const auto* data = flat.data_ptr<int64_t>();
  to.insert(data, data + flat.numel());
}

}  // namespace

PsExchange::PsExchange(wire::Transport& transport, Replica& replica, Options options)
    : transport_(transport),
      replica_(replica),
      options_(std::move(options)),
      plans_(Place(replica.variables(), static_cast<int>(options_.addresses.size()),
                   options_.bucket_bytes)),
      shared_steps_(options_.spec.strategy == Strategy::kSync) {
  replica_.UseOwnMemory();
  BuildRoutes();
  client_ = std::make_unique<PsClient>(
      transport_,
      PsClient::Options{.hello = options_.hello,
                        .addresses = options_.addresses,
                        .shapes = ShapesOf(plans_),
                        .shared_steps = shared_steps_,
                        .owns_buffers = options_.is_chief,
                        .report_interval = kReportInterval,
                        .peer_timeout = options_.peer_timeout,
                        .log = options_.log,
                        .receive = [this](int server, int bucket, const wire::Payload& values) {
                          Receive(server, bucket, values);
                        }});
  if (!options_.is_chief) return;
  coordinator_ = std::make_unique<PsCoordinator>(
      transport_, PsCoordinator::Options{.hello = options_.hello,
                                         .addresses = options_.addresses,
                                         .variables = replica_.variables(),
                                         .plans = plans_,
                                         .spec = options_.spec,
                                         .report_interval = kReportInterval,
                                         .log = options_.log});
}

void PsExchange::BuildRoutes() {
  routes_of_.resize(static_cast<size_t>(replica_.parameter_count()));
  for (size_t server = 0; server < plans_.size(); ++server) {
    first_route_.push_back(static_cast<int>(routes_.size()));
    const int buckets = static_cast<int>(plans_[server].shape.buckets.size());
    for (int bucket = 0; bucket < buckets; ++bucket) {
      Route route{static_cast<int>(server), bucket, plans_[server].PiecesOf(bucket), 0};
      for (const Piece& piece : route.pieces) {
        routes_of_[piece.variable].push_back(static_cast<int>(routes_.size()));
      }
      routes_.push_back(std::move(route));
    }
  }
}

void PsExchange::Receive(int server, int bucket, const wire::Payload& values) {
  if (!plans_[server].shape.is_dense(bucket)) {
    const wire::Chunk bytes = values.InOnePiece();
    replica_.UnpackBuffers({static_cast<const std::byte*>(bytes.data), bytes.size});
    return;
  }
  const Route& route = routes_[first_route_[server] + bucket];
  size_t offset = 0;
  for (const Piece& piece : route.pieces) {
    const size_t bytes = static_cast<size_t>(piece.elements) * sizeof(float);
    values.Copy(offset, bytes, replica_.Next(piece.variable, piece.first));
    offset += bytes;
  }
}

absl::Status PsExchange::TryJoin(FirstValues first, absl::Duration timeout) {
  if (options_.is_chief) MUSTER_RETURN_IF_ERROR(coordinator_->EnsureActive(first, timeout));
  MUSTER_ASSIGN_OR_RETURN(const Position position, client_->Join(timeout));
  MUSTER_RETURN_IF_ERROR(client_->PullAll(position.step));
  replica_.Advance();
  // The servers may have older buffers than those pushed last.
  sent_buffers_ = nullptr;
  progress_ = {position.step, position.sequence, position.limit,
               DataOrigin::FromJson(position.data)};
  return absl::OkStatus();
}

absl::StatusOr<Progress> PsExchange::Join(FirstValues first) {
  const absl::Duration timeout = has_joined_ ? options_.peer_timeout : options_.start_timeout;
  const absl::Time deadline = base::Clock::Real().Now() + timeout;
  for (;;) {
    const absl::Duration left = deadline - base::Clock::Real().Now();
    const absl::Status status = TryJoin(first, std::min(left, kJoinAttemptTimeout));
    if (status.ok()) {
      has_joined_ = true;
      return progress_;
    }
    if (!LostPeers(status) && !absl::IsDeadlineExceeded(status)) return status;
    if (options_.is_over && options_.is_over()) return absl::CancelledError("the job is complete");
    if (base::Clock::Real().Now() <= deadline) continue;
    return has_joined_ ? LostContact(timeout, status.message())
                       : TimedOut(timeout, status.message());
  }
}

absl::StatusOr<bool> PsExchange::Begin(const std::vector<Batch>& batches) {
  progress_.limit = client_->limit();
  if (shared_steps_) {
    if (progress_.step >= progress_.limit) return false;
  } else {
    MUSTER_ASSIGN_OR_RETURN(const bool granted, client_->Claim());
    progress_.step = client_->granted_step();
    if (!granted) return false;
  }
  MUSTER_RETURN_IF_ERROR(PullTables(batches));
  client_->Begin(progress_.step, progress_.sequence);
  for (Route& route : routes_) {
    route.waits_for = 0;
    int last = -1;
    for (const Piece& piece : route.pieces) {
      if (piece.variable != last) ++route.waits_for;
      last = piece.variable;
    }
  }
  gradient_scale_ = 1;
  return true;
}

void PsExchange::OnGradient(int parameter) {
  if (options_.clip_norm > 0) return;  // the norm needs all gradients
  int last = -1;
  for (const int index : routes_of_[parameter]) {
    // A variable with two pieces in one bucket appears twice here. Such a bucket has no other
    // variable, because a server with two parts of a variable has more than its fair share
    // (Place()): the first visit pushes, and `last` skips the second.
    Route& route = routes_[index];
    if (index == last || --route.waits_for > 0) continue;
    last = index;
    Push(route);
  }
}

std::vector<wire::Chunk> PsExchange::GradientsOf(const Route& route) {
  std::vector<wire::Chunk> chunks;
  for (const Piece& piece : route.pieces) {
    torch::Tensor gradient = replica_.Gradient(piece.variable);
    if (!gradient.defined()) {
      gradient = torch::zeros(replica_.variables()[piece.variable].spec.shape);
    }
    if (gradient_scale_ != 1) gradient = gradient * gradient_scale_;
    auto owner = std::make_shared<torch::Tensor>(std::move(gradient));
    const float* data = owner->data_ptr<float>() + piece.first;
    chunks.push_back({data, static_cast<size_t>(piece.elements) * sizeof(float), owner});
  }
  return chunks;
}

void PsExchange::Push(Route& route) {
  route.waits_for = -1;
  client_->Push(route.server, route.bucket, EncodeDense(options_.precision, GradientsOf(route)));
}

float PsExchange::ClipScale() const {
  double squares = 0;
  for (int i = 0; i < replica_.parameter_count(); ++i) {
    const torch::Tensor gradient = replica_.Gradient(i);
    if (!gradient.defined()) continue;
    const torch::Tensor values = gradient.is_sparse() ? gradient.coalesce().values() : gradient;
    const double norm = values.norm().item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  return norm > options_.clip_norm ? static_cast<float>(options_.clip_norm / norm) : 1.0F;
}

// Pushes the buckets that backward did not complete: those with parameters without a gradient, or,
// with clipping, all.
void PsExchange::PushRest(bool skipped) {
  if (!skipped && options_.clip_norm > 0) gradient_scale_ = ClipScale();
  for (Route& route : routes_) {
    if (route.waits_for < 0) continue;
    if (skipped) {
      client_->Push(route.server, route.bucket, EncodeSkipped());
    } else {
      Push(route);
    }
  }
  PushTables(skipped);
  if (options_.is_chief) PushBuffers();
}

void PsExchange::PushTables(bool skipped) {
  for (size_t server = 0; server < plans_.size(); ++server) {
    const ShardShape& shape = plans_[server].shape;
    for (size_t t = 0; t < shape.tables.size(); ++t) {
      const Table& table = shape.tables[t];
      const int bucket = shape.table_bucket(static_cast<int>(t));
      torch::Tensor gradient = replica_.Gradient(table.variable);
      if (skipped || !gradient.defined()) {
        client_->Push(static_cast<int>(server), bucket, EncodeSkipped());
        continue;
      }
      if (!gradient.is_sparse()) gradient = gradient.to_sparse(1);
      gradient = gradient.coalesce();
      const torch::Tensor rows = gradient.indices()[0].contiguous();
      const torch::Tensor values = (gradient.values() * gradient_scale_).contiguous();
      const auto* first = rows.data_ptr<int64_t>();
      const auto* last = first + rows.numel();
      // coalesce() sorts the rows, so those of this server are contiguous.
      const auto* begin = std::lower_bound(first, last, table.first_row);
      const auto* end = std::lower_bound(begin, last, table.first_row + table.rows);
      const absl::Span<const int64_t> held(begin, static_cast<size_t>(end - begin));
      client_->Push(
          static_cast<int>(server), bucket,
          EncodeRows(options_.precision, held, table.first_row,
                     values.data_ptr<float>() + (begin - first) * table.width, table.width));
    }
  }
}

void PsExchange::PushBuffers() {
  const ShardShape& shape = plans_.front().shape;
  if (shape.buffer_bytes == 0) return;
  // Send only changes: buffers include frozen parameters, possibly most of the model.
  if (sent_buffers_ != nullptr && replica_.BuffersAre(*sent_buffers_)) {
    client_->Push(0, shape.buffer_bucket(), EncodeSkipped());
    return;
  }
  sent_buffers_ = replica_.PackBuffers();
  client_->Push(0, shape.buffer_bucket(), EncodeBuffers(sent_buffers_));
}

absl::Status PsExchange::PullTables(const std::vector<Batch>& batches) {
  std::map<std::string, std::set<int64_t>> needed;
  MUSTER_RETURN_IF_ERROR(CatchTorch([&] {
    for (const Batch& batch : batches) {
      for (const RowUse& use : replica_.model().RowsNeeded(batch.inputs)) {
        AddRows(use.rows, needed[use.parameter]);
      }
    }
  }));
  for (int i = 0; i < replica_.parameter_count(); ++i) {
    if (replica_.variables()[i].kind != Variable::Kind::kTable) continue;
    MUSTER_RETURN_IF_ERROR(PullTable(i, needed[replica_.variables()[i].spec.name]));
  }
  return absl::OkStatus();
}

absl::Status PsExchange::PullTable(int variable, const std::set<int64_t>& rows) {
  for (size_t server = 0; server < plans_.size(); ++server) {
    const ShardShape& shape = plans_[server].shape;
    for (size_t t = 0; t < shape.tables.size(); ++t) {
      const Table& table = shape.tables[t];
      if (table.variable != variable) continue;
      std::vector<int64_t> local;
      const auto end = rows.lower_bound(table.first_row + table.rows);
      for (auto row = rows.lower_bound(table.first_row); row != end; ++row) {
        local.push_back(*row - table.first_row);
      }
      if (local.empty()) continue;
      MUSTER_ASSIGN_OR_RETURN(
          const wire::Payload values,
          client_->PullRows(static_cast<int>(server), shape.table_bucket(static_cast<int>(t)),
                            progress_.step, local));
      const size_t width = static_cast<size_t>(table.width) * sizeof(float);
      if (values.size() != local.size() * width) {
        return absl::InternalError(absl::StrCat("ps:", server, " sent rows of the wrong size"));
      }
      auto* data = static_cast<std::byte*>(replica_.Tensor(variable).data_ptr());
      for (size_t i = 0; i < local.size(); ++i) {
        values.Copy(i * width, width,
                    data + static_cast<size_t>(table.first_row + local[i]) * width);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Progress> PsExchange::Finish(bool skipped) {
  PushRest(skipped);
  const absl::Status status = client_->Wait();
  if (absl::IsCancelled(status)) {
    progress_.limit = client_->limit();
    // The step of this task was not needed: the job ended while it was computed.
    progress_.step = progress_.limit;
    return progress_;
  }
  MUSTER_RETURN_IF_ERROR(status);
  replica_.Advance();
  ++progress_.step;
  ++progress_.sequence;
  if (shared_steps_ && options_.spec.backup_tasks > 0) {
    // The others may have continued without this task; it continues at their step.
    progress_.step = progress_.sequence = std::max(progress_.step, client_->reached());
  }
  progress_.limit = client_->limit();
  return progress_;
}

absl::StatusOr<std::unique_ptr<Snapshot>> PsExchange::TakeSnapshot() {
  return coordinator_->TakeSnapshot();
}

absl::Status PsExchange::EndAt(int64_t step) { return coordinator_->EndAt(step); }

absl::Status PsExchange::EndJob() { return coordinator_->EndJob(); }

}  // namespace muster::train
