// Parses arbitrary bytes as a job file. Returns a job or mistakes; a job survives a JSON round
// trip.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "job/format/parse.h"
#include "job/job_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto job = muster::job::ParseJob(text, {.file_name = "job.yaml", .working_dir = "/work"});
  if (!job.ok()) {
    if (job.status().message().empty()) std::abort();
    return 0;
  }
  const auto stored =
      nlohmann::json::parse(muster::job::JobSpecToJson(*job).dump(), nullptr, false);
  const auto read = muster::job::JobSpecFromJson(stored);
  if (!read.ok() || !(*read == *job)) std::abort();
  return 0;
}
