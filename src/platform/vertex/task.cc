#include "platform/vertex/task.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "base/files/files.h"
#include "base/status_macros.h"
#include "platform/vertex/package.h"
#include "platform/vertex/path_rewrite.h"
#include "platform/vertex/pools.h"

namespace muster::vertex {
namespace {

constexpr char kTrainer[] = "muster-trainer";
// Machines start one after another and pull their images first.
constexpr absl::Duration kStartTimeout = absl::Minutes(15);

absl::StatusOr<std::string> NewFolder(const std::string& scratch) {
  std::string folder = base::JoinPath(scratch, "muster-XXXXXX");
  if (::mkdtemp(folder.data()) == nullptr) return base::DiskError(errno, folder);
  for (const char* name : {"work", "run"}) {
    MUSTER_RETURN_IF_ERROR(base::MakeDirectories(base::JoinPath(folder, name)));
  }
  return folder;
}

absl::StatusOr<std::string> WriteTls(const job::JobTls& tls, const std::string& folder) {
  std::string certificates = base::JoinPath(folder, "tls");
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(certificates));
  for (const auto& [name, content] : {std::pair{"ca.crt", &tls.authority},
                                      {"tls.crt", &tls.certificate},
                                      {"tls.key", &tls.key}}) {
    MUSTER_RETURN_IF_ERROR(base::ReplaceFile(base::JoinPath(certificates, name), *content));
  }
  return certificates;
}

}  // namespace

absl::StatusOr<job::TaskLaunch> PrepareTask(storage::FileSystem& files, const TaskRun& run,
                                            const base::Variables& variables,
                                            const std::string& scratch) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission, ReadOwnRun(files, run));
  MUSTER_ASSIGN_OR_RETURN(const auto tls, ReadTls(files, run.folder, submission));
  MUSTER_ASSIGN_OR_RETURN(const Membership membership,
                          ReadClusterSpec(submission.spec, variables("CLUSTER_SPEC")));
  MUSTER_ASSIGN_OR_RETURN(const std::string folder, NewFolder(scratch));
  const std::string work = base::JoinPath(folder, "work");
  MUSTER_RETURN_IF_ERROR(
      Unpack(files, job::TargetOf<job::VertexTarget>(submission).run.packages, work));
  job::JobSpec spec = MovePaths(submission.spec, submission.working_dir, work);
  spec.policies.start_timeout = std::max(spec.policies.start_timeout, kStartTimeout);
  job::LaunchContext context{
      .job_id = submission.id,
      .working_dir = work,
      .trainer = kTrainer,
      .train_config = base::JoinPath(folder, "train.json"),
      .run_dir = base::JoinPath(folder, "run"),
      .cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
      .user_set_omp = !variables("OMP_NUM_THREADS").empty(),
      .resumed = !submission.resumed_from.empty(),
      .resume_step = submission.resume_step};
  if (!spec.train.is_null()) {
    MUSTER_RETURN_IF_ERROR(base::ReplaceFile(context.train_config, spec.train.dump(2)));
  }
  if (tls) {
    MUSTER_ASSIGN_OR_RETURN(context.tls_dir, WriteTls(*tls, folder));
  }
  MUSTER_ASSIGN_OR_RETURN(job::TaskLaunch launch,
                          job::BuildTaskLaunch(spec, membership.cluster, membership.self, context));
  launch.env.emplace("MUSTER_CACHE", base::JoinPath(folder, "cache"));
  return launch;
}

}  // namespace muster::vertex
