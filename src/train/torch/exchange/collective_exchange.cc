// Every task holds the whole shard and applies the same update to it. A step:
//
//    OnGradient   copies complete buckets to gradients_ and starts their all-reduce, in order
//    Finish       starts the rest, then for each bucket: wait, apply
//
// Gloo matches the collectives of the tasks by their order, so every task must start the same ones
// in the same order, also in a step whose gradient it leaves out. The model's parameters are the
// shard's memory: Apply() updates them in place.
#include "train/torch/exchange/collective_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "train/torch/torch_status.h"

namespace muster::train {
namespace {

// Flags that are summed with the first bucket: how many tasks contribute, and how many want to end.
// One cache line, so that the gradients behind it stay aligned.
constexpr int64_t kHeader = 16;
constexpr absl::Duration kReportInterval = absl::Seconds(5);
enum Flag { kContributes, kEnds };

// Maps a failed collective to Unavailable: it fails when a task is lost.
absl::Status CatchLoss(absl::FunctionRef<void()> work) {
  const absl::Status status = CatchTorch(work);
  if (status.ok() || absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(absl::StrCat("lost another task: ", status.message()));
}

// A snapshot in the memory of this process, read while training continues.
class ShardSnapshot final : public Snapshot {
 public:
  ShardSnapshot(Shard& shard, nlohmann::json state) : shard_(shard), state_(std::move(state)) {}
  const nlohmann::json& state() const override { return state_; }
  absl::Status Read(const Extent& extent, Area area,
                    absl::FunctionRef<absl::Status(absl::Span<const std::byte>)> take) override {
    if (!finished_) shard_.FinishSnapshot();
    finished_ = true;
    return take(shard_.Snapshot(area).subspan(static_cast<size_t>(extent.offset),
                                              static_cast<size_t>(extent.bytes)));
  }

 private:
  Shard& shard_;
  const nlohmann::json state_;
  bool finished_ = false;
};

}  // namespace

CollectiveExchange::CollectiveExchange(Replica& replica, Options options)
    : replica_(replica),
      options_(std::move(options)),
      plans_(Place(replica.variables(), 1, options_.bucket_bytes)) {
  const ShardShape& shape = plans_.front().shape;
  buckets_of_.resize(static_cast<size_t>(replica_.parameter_count()));
  for (size_t bucket = 0; bucket < shape.buckets.size(); ++bucket) {
    pieces_.push_back(plans_.front().PiecesOf(static_cast<int>(bucket)));
    for (const Piece& piece : pieces_.back()) {
      buckets_of_[piece.variable].push_back(static_cast<int>(bucket));
    }
  }
  gradients_ = FlatMemory(static_cast<size_t>(shape.elements + kHeader) * sizeof(float));
  works_.resize(pieces_.size());
}

CollectiveExchange::~CollectiveExchange() = default;

absl::StatusOr<Progress> CollectiveExchange::Join(FirstValues first) {
  if (shard_ != nullptr) {
    return absl::FailedPreconditionError("an all-reduce job cannot be rejoined");
  }
  if (!alone()) {
    MUSTER_ASSIGN_OR_RETURN(rendezvous_, Rendezvous(options_.rendezvous));
  }
  std::unique_ptr<ValueSource> source;
  if (options_.rendezvous.rank == 0) {
    MUSTER_ASSIGN_OR_RETURN(source, first());
  }
  MUSTER_RETURN_IF_ERROR(Share(std::move(source)));
  const ShardPlan& plan = plans_.front();
  replica_.UseMemory([&](int variable) {
    const Extent extent = ExtentsOf(plans_, variable).front();
    return reinterpret_cast<float*>(shard_->Assign(Area::kValues).data() + extent.offset);
  });
  if (plan.shape.buffer_bytes > 0) replica_.UnpackBuffers(shard_->Assign(Area::kBuffers));
  if (options_.saves) shard_->PrepareSnapshots();
  return progress_;
}

void CollectiveExchange::WaitFor(c10d::Work& work) {
  for (;;) {
    try {
      work.wait(absl::ToChronoMilliseconds(kReportInterval));
      return;
    } catch (const std::exception&) {
      // wait() throws both on a timeout and on failure; only a completed work has failed.
      if (work.isCompleted()) {
        if (work.exception() != nullptr) throw;
        return;
      }
    }
    options_.rendezvous.log(
        absl::StrCat("step ", progress_.step, ": waiting for ", MissingPeers()));
  }
}

// Each task that waits here sets a key of its own; a task without the key has not come this far.
std::string CollectiveExchange::MissingPeers() {
  const auto key = [&](size_t rank) {
    return absl::StrCat("waits/", meetings_, "/", progress_.step, "/", rank);
  };
  std::vector<std::string> missing;
  const absl::Status asked = CatchTorch([&] {
    rendezvous_.store->set(key(static_cast<size_t>(options_.rendezvous.rank)), {1});
    for (size_t rank = 0; rank < options_.rendezvous.tasks.size(); ++rank) {
      if (rendezvous_.store->check({key(rank)})) continue;
      missing.push_back(options_.rendezvous.tasks[rank].ToString());
    }
  });
  if (!asked.ok() || missing.empty()) return "the other tasks";
  return absl::StrJoin(missing, ", ");
}

absl::Status CollectiveExchange::Gather() {
  if (alone()) return absl::OkStatus();
  ++meetings_;
  return CatchLoss([&] { WaitFor(*rendezvous_.group->barrier()); });
}

void CollectiveExchange::Broadcast(absl::Span<std::byte> bytes) {
  if (alone() || bytes.empty()) return;
  std::vector<torch::Tensor> tensors = {
      torch::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, torch::kUInt8)};
  WaitFor(*rendezvous_.group->broadcast(tensors));
}

// Broadcasts rank 0's values and slots.
absl::Status CollectiveExchange::Share(std::unique_ptr<ValueSource> first) {
  int64_t numbers[3] = {};
  if (first != nullptr) {
    progress_ = first->progress();
    numbers[0] = progress_.step;
    numbers[1] = progress_.data.base;
    numbers[2] = progress_.data.first;
  }
  MUSTER_RETURN_IF_ERROR(CatchLoss([&] {
    Broadcast({reinterpret_cast<std::byte*>(numbers), sizeof(numbers)});
  }));
  progress_ = {numbers[0], numbers[0], options_.total_steps, {numbers[1], numbers[2]}};
  MUSTER_ASSIGN_OR_RETURN(Schedule schedule,
                          Schedule::FromJson(options_.schedule, options_.optimizer.learning_rate,
                                             options_.total_steps));
  shard_ = std::make_unique<Shard>(
      plans_.front().shape, Shard::Options{options_.optimizer, schedule, progress_.step, false});
  if (first != nullptr) {
    const int slots = static_cast<int>(SlotNames(options_.optimizer).size());
    MUSTER_RETURN_IF_ERROR(AssignAll(
        *first, replica_.variables(), plans_, slots,
        [&](const Extent& extent, Area area, absl::Span<const std::byte> bytes) {
          std::memcpy(shard_->Assign(area).data() + extent.offset, bytes.data(), bytes.size());
          return absl::OkStatus();
        }));
  }
  return CatchLoss([&] {
    for (const Area area : {Area::kValues, Area::kSlot0, Area::kSlot1, Area::kBuffers}) {
      Broadcast(shard_->Assign(area));
    }
  });
}

absl::StatusOr<bool> CollectiveExchange::Begin(const std::vector<Batch>& /*batches*/) {
  if (progress_.step >= progress_.limit) return false;
  waits_for_.assign(pieces_.size(), 0);
  for (const std::vector<int>& buckets : buckets_of_) {
    for (const int bucket : buckets) ++waits_for_[bucket];
  }
  next_bucket_ = 0;
  skipped_ = false;
  return true;
}

void CollectiveExchange::OnGradient(int parameter) {
  for (const int bucket : buckets_of_[parameter]) --waits_for_[bucket];
  if (alone()) return;
  const int buckets = static_cast<int>(pieces_.size());
  while (next_bucket_ < buckets && waits_for_[next_bucket_] == 0) Launch(next_bucket_++);
}

void CollectiveExchange::FillBucket(int bucket) {
  const Bucket& range = plans_.front().shape.buckets[bucket];
  float* out = gradients_.floats() + kHeader + range.offset;
  for (const Piece& piece : pieces_[bucket]) {
    float* to = out + piece.offset;
    const torch::Tensor gradient = skipped_ ? torch::Tensor() : replica_.Gradient(piece.variable);
    if (!gradient.defined()) {
      std::memset(to, 0, static_cast<size_t>(piece.elements) * sizeof(float));
      continue;
    }
    std::memcpy(to, gradient.data_ptr<float>() + piece.first,
                static_cast<size_t>(piece.elements) * sizeof(float));
  }
}

void CollectiveExchange::Launch(int bucket) {
  FillBucket(bucket);
  const Bucket& range = plans_.front().shape.buckets[bucket];
  float* begin = gradients_.floats() + kHeader + range.offset;
  int64_t elements = range.elements;
  if (bucket == 0) {
    begin -= kHeader;
    elements += kHeader;
    std::fill(begin, begin + kHeader, 0.0F);
    begin[kContributes] = skipped_ ? 0 : 1;
    begin[kEnds] = end_requested_ ? 1 : 0;
  }
  std::vector<torch::Tensor> tensors = {torch::from_blob(begin, {elements}, torch::kFloat32)};
  works_[bucket] = rendezvous_.group->allreduce(tensors);
}

float CollectiveExchange::ClipScale(float scale) const {
  if (options_.clip_norm <= 0) return scale;
  const torch::Tensor all = torch::from_blob(gradients_.floats() + kHeader,
                                             {plans_.front().shape.elements}, torch::kFloat32);
  const double norm = all.norm().item<double>() * scale;
  return norm > options_.clip_norm ? scale * static_cast<float>(options_.clip_norm / norm) : scale;
}

// Returns a bucket's gradients; in place if the bucket is one piece of one gradient.
const float* CollectiveExchange::GradientOf(int bucket) {
  const bool keep = !alone() || options_.clip_norm > 0;
  if (!keep && pieces_[bucket].size() == 1) {
    const Piece& piece = pieces_[bucket].front();
    const torch::Tensor& gradient = replica_.Tensor(piece.variable).grad();
    if (gradient.defined() && !gradient.is_sparse() && gradient.is_contiguous()) {
      return gradient.data_ptr<float>() + piece.first;
    }
  }
  if (!keep) FillBucket(bucket);
  return gradients_.floats() + kHeader + plans_.front().shape.buckets[bucket].offset;
}

absl::Status CollectiveExchange::Reduce(bool skipped) {
  skipped_ = skipped;
  const int buckets = static_cast<int>(pieces_.size());
  return CatchLoss([&] {
    if (!alone()) {
      while (next_bucket_ < buckets) Launch(next_bucket_++);
      if (options_.clip_norm > 0) {
        for (const auto& work : works_) WaitFor(*work);
      } else {
        WaitFor(*works_.front());  // contains the flags; the others are awaited one by one below
      }
    } else if (options_.clip_norm > 0) {
      for (int bucket = 0; bucket < buckets; ++bucket) FillBucket(bucket);
    }
    // The same sum on every task, so that all of them take the same branch below.
    const float contributing = alone() ? (skipped ? 0 : 1) : gradients_.floats()[kContributes];
    const float scale = contributing > 0 ? ClipScale(1 / contributing) : 0;
    for (int bucket = 0; bucket < buckets; ++bucket) {
      if (!alone() && works_[bucket] != nullptr) WaitFor(*works_[bucket]);
      if (contributing == 0) {
        shard_->Apply(bucket, {}, 1);
        continue;
      }
      FlatGradient gradient(GradientOf(bucket));
      shard_->Apply(bucket, {&gradient}, scale);
    }
  });
}

absl::StatusOr<Progress> CollectiveExchange::Finish(bool skipped) {
  MUSTER_RETURN_IF_ERROR(Reduce(skipped));
  const bool end = alone() ? end_requested_ : gradients_.floats()[kEnds] > 0;
  ++progress_.step;
  ++progress_.sequence;
  // The flag was summed with the step that has just completed: all tasks stop at the same step.
  if (end) progress_.limit = std::min(progress_.limit, progress_.step);
  return progress_;
}

absl::StatusOr<std::unique_ptr<Snapshot>> CollectiveExchange::TakeSnapshot() {
  if (plans_.front().shape.buffer_bytes > 0) {
    const auto buffers = replica_.PackBuffers();
    shard_->SetBuffers(*buffers);
  }
  shard_->BeginSnapshot();
  const std::vector<int64_t> cursors(static_cast<size_t>(world()), progress_.step);
  return std::make_unique<ShardSnapshot>(
      *shard_, nlohmann::json{{"step", progress_.step}, {"cursors", cursors}});
}

// The other tasks receive the flag with the next step, which all complete.
absl::Status CollectiveExchange::EndAt(int64_t step) {
  end_requested_ = true;
  if (alone()) progress_.limit = std::min(progress_.limit, step);
  return absl::OkStatus();
}

}  // namespace muster::train
