#include "train/torch/exchange/replica.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "train/torch/tensors.h"

namespace muster::train {
namespace {

constexpr int64_t kAlignment = 16;  // elements: a cache line

class ReadyHook final : public torch::autograd::FunctionPostHook {
 public:
  ReadyHook(std::function<void(int)> ready, int variable)
      : ready_(std::move(ready)), variable_(variable) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    ready_(variable_);
    return outputs;
  }

 private:
  std::function<void(int)> ready_;
  int variable_;
};

}  // namespace

Replica::~Replica() = default;

absl::StatusOr<std::unique_ptr<Replica>> Replica::Create(Model& model,
                                                         const std::set<std::string>& tables) {
  std::unique_ptr<Replica> replica(new Replica(model));
  const auto add = [&](const std::string& name, const torch::Tensor& tensor,
                       Variable::Kind kind) -> absl::Status {
    auto dtype = DTypeOf(tensor.scalar_type());
    if (!dtype.ok()) return base::Annotate(dtype.status(), name);
    if (kind != Variable::Kind::kBuffer && *dtype != base::DType::kFloat32) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", name, " is ", base::ToString(*dtype),
                       "; parameters must be float32 (set wire_precision to send fewer bytes)"));
    }
    replica->variables_.push_back({{name, *dtype, tensor.sizes().vec()}, kind});
    replica->tensors_.push_back(tensor);
    return absl::OkStatus();
  };
  for (const auto& [name, tensor] : model.Parameters()) {
    if (!tensor.requires_grad()) continue;
    MUSTER_RETURN_IF_ERROR(
        add(name, tensor, tables.contains(name) ? Variable::Kind::kTable : Variable::Kind::kDense));
  }
  replica->parameter_count_ = static_cast<int>(replica->variables_.size());
  if (replica->parameter_count_ == 0) {
    return absl::InvalidArgumentError("the model has no parameters to train");
  }
  for (const auto& [name, tensor] : model.Buffers()) {
    MUSTER_RETURN_IF_ERROR(add(name, tensor, Variable::Kind::kBuffer));
  }
  return replica;
}

torch::Tensor Replica::View(float* data, int variable) const {
  return torch::from_blob(data, variables_[variable].spec.shape, torch::kFloat32);
}

// Only dense parameters move: a table keeps its tensor, into which the rows of a batch are pulled.
void Replica::UseOwnMemory() {
  int64_t elements = 0;
  offsets_.assign(variables_.size(), 0);
  for (int i = 0; i < parameter_count_; ++i) {
    if (variables_[i].kind != Variable::Kind::kDense) continue;
    offsets_[i] = elements;
    elements +=
        (base::ElementsOf(variables_[i].spec.shape) + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (int side = 0; side < 2; ++side) {
    memory_[side] = FlatMemory(static_cast<size_t>(elements) * sizeof(float));
    views_[side].resize(variables_.size());
    for (int i = 0; i < parameter_count_; ++i) {
      if (variables_[i].kind != Variable::Kind::kDense) continue;
      views_[side][i] = View(memory_[side].floats() + offsets_[i], i);
    }
  }
  torch::NoGradGuard no_grad;
  for (int i = 0; i < parameter_count_; ++i) {
    if (variables_[i].kind != Variable::Kind::kDense) continue;
    views_[active_][i].copy_(tensors_[i]);
    tensors_[i].set_data(views_[active_][i]);
  }
}

void Replica::UseMemory(const std::function<float*(int)>& place) {
  for (int i = 0; i < parameter_count_; ++i) tensors_[i].set_data(View(place(i), i));
}

float* Replica::Next(int variable, int64_t first) {
  return memory_[1 - active_].floats() + offsets_[variable] + first;
}

// set_data() replaces the storage of a tensor and keeps its identity, so the module, autograd and
// the hooks continue to refer to it.
void Replica::Advance() {
  active_ = 1 - active_;
  for (int i = 0; i < parameter_count_; ++i) {
    if (variables_[i].kind == Variable::Kind::kDense) tensors_[i].set_data(views_[active_][i]);
  }
}

torch::Tensor Replica::Gradient(int variable) const {
  torch::Tensor& gradient = tensors_[variable].mutable_grad();
  if (!gradient.defined()) return gradient;
  if (gradient.is_sparse()) {
    if (variables_[variable].kind == Variable::Kind::kTable) return gradient;
    torch::NoGradGuard no_grad;
    gradient = gradient.to_dense();  // stored: it is read several times
  }
  return gradient.contiguous();
}

void Replica::ZeroGradient(int variable) {
  torch::NoGradGuard no_grad;
  torch::Tensor& gradient = tensors_[variable].mutable_grad();
  if (gradient.defined()) gradient = torch::zeros_like(gradient);
}

void Replica::ClearGradients() {
  for (int i = 0; i < parameter_count_; ++i) tensors_[i].mutable_grad() = torch::Tensor();
}

absl::Span<const std::byte> Replica::Bytes(int variable) const {
  torch::Tensor& tensor = const_cast<torch::Tensor&>(tensors_[variable]);
  if (!tensor.is_contiguous()) {
    torch::NoGradGuard no_grad;
    tensor.set_data(tensor.contiguous());
  }
  return {static_cast<const std::byte*>(tensor.data_ptr()),
          static_cast<size_t>(variables_[variable].spec.bytes())};
}

std::shared_ptr<std::vector<std::byte>> Replica::PackBuffers() const {
  auto packed = std::make_shared<std::vector<std::byte>>();
  for (size_t i = parameter_count_; i < variables_.size(); ++i) {
    const auto bytes = Bytes(static_cast<int>(i));
    packed->insert(packed->end(), bytes.begin(), bytes.end());
  }
  return packed;
}

bool Replica::BuffersAre(absl::Span<const std::byte> bytes) const {
  for (size_t i = parameter_count_; i < variables_.size(); ++i) {
    const auto mine = Bytes(static_cast<int>(i));
    if (mine.size() > bytes.size()) return false;
    if (!mine.empty() && std::memcmp(mine.data(), bytes.data(), mine.size()) != 0) return false;
    bytes.remove_prefix(mine.size());
  }
  return true;
}

void Replica::UnpackBuffers(absl::Span<const std::byte> bytes) {
  for (size_t i = parameter_count_; i < variables_.size(); ++i) {
    const auto size = static_cast<size_t>(variables_[i].spec.bytes());
    (void)Bytes(static_cast<int>(i));  // makes the tensor contiguous
    if (size > 0) std::memcpy(tensors_[i].data_ptr(), bytes.data(), size);
    bytes.remove_prefix(size);
  }
}

void Replica::OnGradient(std::function<void(int)> ready) {
  for (int i = 0; i < parameter_count_; ++i) {
    auto accumulator = torch::autograd::impl::grad_accumulator(tensors_[i]);
    accumulator->add_post_hook(std::make_unique<ReadyHook>(ready, i));
    // A tensor refers to its accumulator weakly; without an owner the hook would be lost.
    accumulators_.push_back(std::move(accumulator));
  }
}

}  // namespace muster::train
