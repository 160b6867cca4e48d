// ParseJob on any bytes: it returns a job or mistakes, and a job survives its way through JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "job/job_spec.h"
#include "job/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto job = muster::ParseJob(text, {.file_name = "job.yaml", .working_dir = "/work"});
  if (!job.ok()) {
    if (job.status().message().empty()) std::abort();
    return 0;
  }
  const auto stored = nlohmann::json::parse(muster::JobSpecToJson(*job).dump(), nullptr, false);
  const auto read = muster::JobSpecFromJson(stored);
  if (!read.ok() || !(*read == *job)) std::abort();
  return 0;
}
