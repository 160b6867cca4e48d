#include "cli/vertex_options.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "cli/job_lookup.h"
#include "platform/vertex/custom_job.h"
#include "supervise/job_dir.h"

namespace muster::cli {
namespace {

using Texts = std::vector<std::pair<const char*, const std::string*>>;

// Sets the id and returns true if it is free or belongs to an unmade job (see IsUnmade). Inherits
// the nonces of that job's submissions, by which Submit() recognizes the folder and the custom job
// that they may have left.
absl::StatusOr<bool> MayTake(Context& context, const std::string& id, Submission& submission) {
  MUSTER_ASSIGN_OR_RETURN(History * history, context.history());
  auto job = history->GetJob(id);
  VertexRun& run = MutableTargetOf<VertexTarget>(submission).run;
  run.tries.clear();
  if (job.ok()) {
    MUSTER_RETURN_IF_ERROR(Refresh(context, *job));
    if (!IsUnmade(*job)) return false;
    const auto before = JobDir(job->directory).LoadSubmission();
    if (before.ok()) run.tries = TargetOf<VertexTarget>(*before).run.tries;
  } else if (!absl::IsNotFound(job.status())) {
    return job.status();
  }
  submission.id = id;
  return true;
}

}  // namespace

void VertexTargetOptions::AddTo(VertexTarget& target) const {
  if (!project.empty()) target.project = project;
  if (!region.empty()) target.region = region;
}

std::string VertexRunOptions::FirstGiven() const {
  const Texts texts = {{"--job-id", &job_id},
                       {"--bucket", &bucket},
                       {"--scale-tier", &scale_tier},
                       {"--master-type", &master_type},
                       {"--worker-type", &worker_type},
                       {"--parameter-server-type", &parameter_server_type},
                       {"--dataset", &dataset},
                       {"--resume", &resume},
                       {"--image", &image}};
  for (const auto& [name, value] : texts) {
    if (!value->empty()) return name;
  }
  if (worker_count >= 0) return "--worker-count";
  if (parameter_server_count >= 0) return "--parameter-server-count";
  return rebuild ? "--rebuild" : "";
}

void VertexRunOptions::AddTo(VertexTarget& target) const {
  for (const auto& [given, field] : {std::pair(&bucket, &target.bucket),
                                     {&scale_tier, &target.tier},
                                     {&master_type, &target.master_type},
                                     {&worker_type, &target.worker_type},
                                     {&parameter_server_type, &target.parameter_server_type},
                                     {&dataset, &target.dataset},
                                     {&image, &target.image}}) {
    if (!given->empty()) *field = *given;
  }
  if (worker_count >= 0) target.workers = worker_count;
  if (parameter_server_count >= 0) target.parameter_servers = parameter_server_count;
  if (rebuild) target.rebuild = true;
}

void AddVertexTargetOptions(Command& command, VertexTargetOptions* options) {
  command.Group(kVertexGroup);
  command.Option("--project", &options->project,
                 "The project (default: the credentials', or GOOGLE_CLOUD_PROJECT)");
  command.Option("--region", &options->region, "The region (default: us-central1)");
  command.Group("");
}

void AddVertexJobOptions(Command& command, VertexRunOptions* options) {
  command.Group(kVertexGroup);
  command.Option("--job-id", &options->job_id,
                 "The new job's id (default: train_DATE_TIME, eval_DATE_TIME)");
  command.Option("--bucket", &options->bucket,
                 "The bucket for all that the job needs and makes (default: muster-PROJECT)");
  command.Option("--scale-tier", &options->scale_tier,
                 "BASIC, STANDARD_1, PREMIUM_1, BASIC_GPU or CUSTOM (default: BASIC_GPU)");
  command.Option("--master-type", &options->master_type,
                 "CUSTOM: the machine of the task that leads");
  command.Option("--image", &options->image, "The image of roles that name none");
  command.Flag("--rebuild", &options->rebuild,
               "Package the working directory anew and send all of it");
  command.Group("");
}

void AddVertexTrainOptions(Command& command, VertexRunOptions* options) {
  command.Group(kVertexGroup);
  command.Option("--worker-type", &options->worker_type,
                 "CUSTOM: the workers' machine (default: standard_gpu)");
  command.Option("--worker-count", &options->worker_count,
                 "CUSTOM: how many workers (default: the file's)");
  command.Option("--parameter-server-type", &options->parameter_server_type,
                 "CUSTOM: the machine of ps tasks (default: large_model)");
  command.Option("--parameter-server-count", &options->parameter_server_count,
                 "CUSTOM: how many ps tasks (default: the file's)");
  command.Option("--dataset", &options->dataset,
                 "The URL of the built-in trainer's data (default: the file's)");
  command.Option("--resume", &options->resume,
                 "The id of the job to go on from; the new one writes to the same folder");
  command.Group("");
}

absl::Status ChooseJobId(Context& context, const std::string& wanted, const std::string& prefix,
                         Submission& submission) {
  if (!wanted.empty()) {
    MUSTER_RETURN_IF_ERROR(vertex::CheckJobId(wanted));
    MUSTER_ASSIGN_OR_RETURN(const bool free, MayTake(context, wanted, submission));
    if (free) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("the job id '", wanted, "' is taken (muster show ",
                                                 wanted, "); choose another with --job-id"));
  }
  const std::string id = absl::StrCat(
      prefix, "_", absl::FormatTime("%Y%m%d_%H%M%S", absl::Now(), absl::LocalTimeZone()));
  std::string tried = id;
  for (int i = 2;; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const bool free, MayTake(context, tried, submission));
    if (free) return absl::OkStatus();
    tried = absl::StrCat(id, "_", i);
  }
}

absl::Status ApplyVertexOptions(Context& context, const std::string& platform,
                                const VertexRunOptions& options, Submission& submission) {
  if (platform != "vertex") {
    const std::string given = options.FirstGiven();
    if (given.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(given, " is for jobs on Vertex AI: add --on vertex"));
  }
  options.AddTo(MutableTargetOf<VertexTarget>(submission));
  MUSTER_RETURN_IF_ERROR(ChooseJobId(context, options.job_id, "train", submission));
  submission.resumed_from = options.resume;
  return absl::OkStatus();
}

}  // namespace muster::cli
