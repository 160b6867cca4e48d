// TFRecord files in the page cache: reads all records and verifies both checksums, beside memcpy of
// the same bytes; parses 28 x 28 examples into batches. One thread. Prints one line each.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/files/mapping.h"
#include "data/open.h"
#include "data/tfrecord/example.h"
#include "data/tfrecord/record_file.h"
#include "data/tfrecord/record_writer.h"
#include "timing.h"

namespace {

using muster::bench::Median;
using muster::bench::SecondsOf;
using muster::data::Batch;
using muster::data::DataConfig;

constexpr int kRounds = 11;
constexpr int64_t kFileBytes = int64_t{256} << 20;
constexpr size_t kBatch = 64;

template <typename T>
T Value(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// Writes a file of examples, each with a text of that many bytes and a label. Returns their number.
int64_t WriteFile(const std::string& path, size_t image_bytes) {
  std::mt19937 random(1);
  auto writer = Value(muster::data::RecordWriter::Open(path, muster::data::Compression::kNone));
  muster::data::ExampleBuilder builder;
  const auto count = kFileBytes / static_cast<int64_t>(image_bytes + 60);
  std::string image(image_bytes, '\0');
  for (int64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k + 4 <= image.size(); k += 4) {
      const auto word = static_cast<uint32_t>(random());
      std::memcpy(image.data() + k, &word, sizeof(word));
    }
    builder.AddBytes("image", image);
    builder.AddInts("label", {i % 10});
    if (!writer.Write(builder.Finish()).ok()) std::exit(1);
  }
  if (!writer.Close().ok()) std::exit(1);
  return count;
}

// Both map the file again in each round, so that both pay for its page faults.
void CompareWithCopy(const char* name, const std::string& path) {
  std::vector<char> copy(static_cast<size_t>(kFileBytes) * 2, 1);
  std::vector<double> ours;
  std::vector<double> peer;
  size_t bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    peer.push_back(SecondsOf([&] {
      FILE* file = std::fopen(path.c_str(), "rb");
      std::fseek(file, 0, SEEK_END);
      const auto mapping = Value(muster::base::Mapping::Of(fileno(file), std::ftell(file)));
      std::memcpy(copy.data(), mapping.bytes().data(), mapping.bytes().size());
      bytes = mapping.bytes().size();
      std::fclose(file);
    }));
    ours.push_back(SecondsOf([&] {
      const auto file = Value(muster::data::RecordFile::Open(path));
      muster::data::RecordReader reader(file, muster::data::OnError::kFail);
      while (Value(reader.Next()).has_value()) {
      }
    }));
  }
  const double size = static_cast<double>(bytes) / 1e9;
  std::printf("%-40s %5.1f GB/s / %5.1f GB/s = %.2f\n", name, size / Median(ours),
              size / Median(peer), Median(peer) / Median(ours));
}

void ParseBatches(const char* name, const std::string& path, bool shuffle) {
  DataConfig config;
  config.format = "tfrecord";
  config.path = path;
  config.classes = 10;
  config.record_features = {{"image", {"uint8", {28, 28}}}, {"label", {"int64", {}}}};
  const auto dataset = Value(muster::data::OpenDataset(config));
  std::vector<int64_t> order(static_cast<size_t>(dataset->size()));
  std::iota(order.begin(), order.end(), 0);
  if (shuffle) std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<double> seconds;
  Batch batch;
  for (int round = 0; round < kRounds; ++round) {
    seconds.push_back(SecondsOf([&] {
      for (size_t i = 0; i + kBatch <= order.size(); i += kBatch) {
        if (!dataset->Read(absl::MakeConstSpan(order).subspan(i, kBatch), batch).ok()) std::exit(1);
      }
    }));
  }
  std::printf("%-40s %9.0f examples/s\n", name,
              static_cast<double>(order.size()) / Median(seconds));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = std::string(argc > 1 ? argv[1] : "/tmp") + "/bench.tfrecord";
  std::printf("256 MB in the page cache                 with check sums / memcpy\n");
  WriteFile(path, 100'000);
  CompareWithCopy("records of 100 kB", path);
  WriteFile(path, 784);
  CompareWithCopy("records of 28 x 28 bytes", path);
  ParseBatches("28 x 28 into batches of 64, in order", path, false);
  ParseBatches("28 x 28 into batches of 64, shuffled", path, true);
  ::unlink(path.c_str());
}
