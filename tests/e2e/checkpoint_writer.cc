// usage: checkpoint_writer MODEL_DIR STEP…
// Saves a small checkpoint per step, as the trainer would; the last is final. For
// checkpoint_test.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/writer.h"

namespace muster::checkpoint {
namespace {

// Tensors of every element size; element i of each is i + step.
template <typename Element>
std::vector<std::byte> Count(const base::TensorSpec& spec, int64_t step) {
  std::vector<Element> values(static_cast<size_t>(base::ElementsOf(spec.shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<Element>(static_cast<int64_t>(i) + step);
  }
  std::vector<std::byte> bytes(values.size() * sizeof(Element));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<std::byte> Values(const base::TensorSpec& spec, int64_t step) {
  if (spec.dtype == base::DType::kFloat32) return Count<float>(spec, step);
  if (spec.dtype == base::DType::kInt64) return Count<int64_t>(spec, step);
  return Count<uint8_t>(spec, step);
}

absl::Status Save(const std::string& model_dir, int64_t step, bool final) {
  const std::vector<base::TensorSpec> weights = {
      {"conv.weight", base::DType::kFloat32, {8, 1, 5, 5}},
      {"conv.bias", base::DType::kFloat32, {3}},
      {"norm.count", base::DType::kInt64, {}},
      {"fc.weight", base::DType::kFloat32, {10, 20}},
      {"mask", base::DType::kUint8, {3}}};
  const std::vector<base::TensorSpec> slots = {{"fc.weight/m", base::DType::kFloat32, {10, 20}}};
  auto writer = Writer::Begin(
      model_dir, {.step = step, .model_name = "tiny", .final = final, .max_file_bytes = 1000},
      weights, slots);
  if (!writer.ok()) return writer.status();
  for (const auto* specs : {&weights, &slots}) {
    for (const base::TensorSpec& spec : *specs) {
      const absl::Status status = (*writer)->Append(Values(spec, step));
      if (!status.ok()) return status;
    }
  }
  return (*writer)->Commit({{"step", step}, {"rng", "12345"}});
}

}  // namespace
}  // namespace muster::checkpoint

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const absl::Status status =
        muster::checkpoint::Save(argv[1], std::atoll(argv[i]), /*final=*/i == argc - 1);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
  }
  return 0;
}
