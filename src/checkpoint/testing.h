// Test checkpoints with known content.
#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes/dtype.h"
#include "base/files/files.h"
#include "checkpoint/format.h"
#include "checkpoint/writer.h"

namespace muster::checkpoint {

using Bytes = std::vector<std::byte>;

// Returns bytes that depend on the tensor's name, the step and the offset.
inline Bytes BytesOf(const base::TensorSpec& spec, int64_t step = 0) {
  Bytes bytes(static_cast<size_t>(spec.bytes()));
  size_t seed = static_cast<size_t>(step) * 31;
  for (const char c : spec.name) seed = seed * 131 + static_cast<unsigned char>(c);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((seed + i * 7) >> 2);
  return bytes;
}

inline std::vector<base::TensorSpec> SomeWeights() {
  return {{"conv.weight", base::DType::kFloat32, {4, 1, 3, 3}},
          {"conv.bias", base::DType::kFloat32, {3}},
          {"norm.count", base::DType::kInt64, {}},
          {"fc.weight", base::DType::kFloat32, {5, 7}},
          {"mask", base::DType::kBool, {3}},
          {"empty", base::DType::kFloat32, {0, 4}},
          {"half", base::DType::kBfloat16, {3, 1}}};
}

inline std::vector<base::TensorSpec> SomeSlots() {
  return {{"conv.weight/m", base::DType::kFloat32, {4, 1, 3, 3}},
          {"fc.weight/m", base::DType::kFloat32, {5, 7}}};
}

inline absl::Status AppendAll(Writer& writer, const std::vector<base::TensorSpec>& specs,
                              int64_t step) {
  for (const base::TensorSpec& spec : specs) {
    const absl::Status status = writer.Append(BytesOf(spec, step));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Saves a complete checkpoint of SomeWeights() and SomeSlots() as `job`.
inline absl::Status Save(const std::string& model_dir, const WriteOptions& options,
                         const std::string& job = "") {
  auto writer = Writer::Begin(model_dir, options, SomeWeights(), SomeSlots());
  if (!writer.ok()) return writer.status();
  for (const auto& specs : {SomeWeights(), SomeSlots()}) {
    const absl::Status status = AppendAll(**writer, specs, options.step);
    if (!status.ok()) return status;
  }
  nlohmann::json state = {{"step", options.step}, {"rng", "123"}};
  if (!job.empty()) state["job"] = job;
  return (*writer)->Commit(state);
}

inline absl::Status SaveStep(const std::string& model_dir, int64_t step,
                             const std::string& job = "") {
  return Save(model_dir, {.step = step, .model_name = "cnn"}, job);
}

inline std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void Spill(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

// Flips one bit of the byte in the middle.
inline void FlipByte(const std::string& path) {
  std::string content = Slurp(path);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  Spill(path, content);
}

}  // namespace muster::checkpoint
