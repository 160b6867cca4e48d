// Writes a checkpoint of one tensor and waits for it, as a trainer without a writer thread would.
//
// usage: bench_blocking_write FOLDER MEGABYTES; prints the seconds that it took
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/time/clock.h"
#include "checkpoint/writer.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int64_t megabytes = std::atoi(argv[2]);
  std::vector<std::byte> bytes(static_cast<size_t>(megabytes) << 20, std::byte{1});
  const absl::Time start = absl::Now();
  auto writer = muster::checkpoint::Writer::Begin(
      argv[1], {.step = 1, .model_name = "bench"},
      {{"w", muster::base::DType::kFloat32, {megabytes << 18}}}, {});
  if (!writer.ok() || !(*writer)->Append(bytes).ok() ||
      !(*writer)->Commit(nlohmann::json::object()).ok()) {
    return 1;
  }
  std::printf("%f\n", absl::ToDoubleSeconds(absl::Now() - start));
}
