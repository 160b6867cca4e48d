// Helpers for the tests of this module.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "data/dataset.h"
#include "data/input/batch.h"
#include "gtest/gtest.h"
#include "zlib.h"

namespace muster::data {

inline void WriteBytes(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

inline std::string Gzip(absl::string_view text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

// Example i has the input {i} and the target i. Reading the example `broken` fails.
class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(int64_t size, int64_t broken = -1) : size_(size), broken_(broken) {}

  int64_t size() const override { return size_; }
  Feature inputs() const override { return {base::DType::kFloat32, {1}}; }
  Feature targets() const override { return {base::DType::kInt64, {}}; }
  int64_t classes() const override { return 0; }
  absl::Status Read(absl::Span<const int64_t> indices, Batch& out) const override {
    if (const absl::Status status = Prepare(indices, out); !status.ok()) return status;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == broken_) return absl::DataLossError("the example is broken");
      out.inputs.as<float>()[i] = static_cast<float>(indices[i]);
      out.targets.as<int64_t>()[i] = indices[i];
    }
    return absl::OkStatus();
  }

 private:
  int64_t size_;
  int64_t broken_;
};

inline std::vector<int64_t> TargetsOf(const Batch& batch) {
  const auto* first = batch.targets.as<int64_t>();
  return {first, first + base::ElementsOf(batch.targets.shape)};
}

inline std::vector<float> InputsOf(const Batch& batch) {
  const auto* first = batch.inputs.as<float>();
  return {first, first + base::ElementsOf(batch.inputs.shape)};
}

}  // namespace muster::data
