#include "jobs/results/send_logs.h"

#include <filesystem>
#include <vector>

#include "base/status_macros.h"
#include "storage/copy.h"
#include "supervise/job_dir.h"

namespace muster::jobs {

absl::Status SendLogs(const std::string& directory) {
  const supervise::JobDir job(directory);
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission, job.LoadSubmission());
  // Only the programs of the job can write to a storage that is not supported.
  const std::string& model_dir = submission.spec.model_dir;
  if (!storage::IsRemote(model_dir) || !storage::IsSupported(model_dir)) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const storage::Url place, storage::ParseUrl(model_dir));
  const storage::Url to =
      place.Child("logs").Child(std::filesystem::path(directory).filename().string());
  const storage::Url from = storage::LocalUrl(job.logs()).AsFolder();
  storage::Storage storage;
  MUSTER_ASSIGN_OR_RETURN(storage::FileSystem * here, storage.For(from));
  MUSTER_ASSIGN_OR_RETURN(const auto logs, here->List(from, storage::Depth::kHere));
  std::vector<storage::CopyPair> pairs;
  pairs.reserve(logs.size());
  for (const auto& log : logs) pairs.push_back({log, to.Child(log.url.Basename())});
  return storage::CopyFiles(storage, pairs);
}

}  // namespace muster::jobs
