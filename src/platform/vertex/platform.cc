#include "platform/vertex/platform.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "job/format/parse.h"
#include "platform/vertex/agent.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/evaluation.h"
#include "platform/vertex/log_copy.h"
#include "platform/vertex/machines.h"
#include "platform/vertex/observe.h"
#include "platform/vertex/overrides.h"
#include "platform/vertex/run_folder.h"
#include "storage/gs/credentials.h"
#include "supervise/job_dir.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr int kLastLines = 10;
constexpr absl::Duration kUnreachableFor = absl::Seconds(10);
// A requested job may take this long to appear in the service's list.
constexpr absl::Duration kAppearTimeout = absl::Minutes(10);

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

VertexPlatform::VertexPlatform(platform::Traits traits, platform::Environment environment)
    : Platform(std::move(traits)), environment_(std::move(environment)) {}

void VertexPlatform::Note(const std::string& text) const {
  if (environment_.notify) environment_.notify(text);
}

absl::StatusOr<Client*> VertexPlatform::ClientNow(const std::string& region) {
  const auto failed = failed_.find(region);
  // The stored failure would name the job of an earlier caller.
  if (failed != failed_.end() && absl::Now() - failed->second < kUnreachableFor) {
    return absl::UnavailableError(absl::StrCat(
        "Vertex AI in ", region, " did not respond a moment ago; try again in a few seconds"));
  }
  if (client_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(client_, Client::Create(base::ProcessVariables()));
  }
  return client_.get();
}

std::vector<platform::Limit> VertexPlatform::Unsupported(const job::Submission& submission) const {
  std::vector<platform::Limit> limits = LimitsOf(submission.spec);
  platform::AddEntryPointLimits(submission.spec, limits);
  for (const job::RoleSpec& role : submission.spec.roles) {
    const auto image = ImageOf(role, job::TargetOf<job::VertexTarget>(submission), "");
    if (image.ok()) continue;
    limits.push_back({.what = std::string(image.status().message()), .fatal = true});
  }
  return limits;
}

absl::StatusOr<job::VertexTarget> VertexPlatform::Resolve(job::VertexTarget target) {
  if (target.region.empty()) target.region = kDefaultRegion;
  MUSTER_RETURN_IF_ERROR(CheckRegion(target.region));
  if (target.project.empty()) target.project = storage::GoogleProject(base::ProcessVariables());
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow(target.region));
  // Checked before the project: without credentials, an error about the project would mislead.
  if (const absl::Status known = client->SignIn(); !known.ok()) {
    return base::Annotate(known, "credentials");
  }
  if (target.project.empty()) {
    return absl::InvalidArgumentError(
        "missing project; pass --project ID, or set GOOGLE_CLOUD_PROJECT; `gcloud projects list` "
        "lists them");
  }
  const base::Variables variables = base::ProcessVariables();
  if (target.bucket.empty()) target.bucket = variables("MUSTER_VERTEX_BUCKET");
  if (target.bucket.empty()) {
    target.bucket =
        absl::StrCat("muster-", absl::StrReplaceAll(target.project, {{":", "-"}, {".", "-"}}));
  }
  target.bucket = BucketName(target.bucket);
  if (target.folder_prefix.empty()) {
    target.folder_prefix = variables("MUSTER_VERTEX_FOLDER_PREFIX");
  }
  MUSTER_RETURN_IF_ERROR(CheckFolderPrefix(target.folder_prefix));
  MUSTER_RETURN_IF_ERROR(storage::ParseUrl(absl::StrCat("gs://", target.bucket, "/x")).status());
  if (absl::StrContains(target.bucket, '/')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bucket ", target.bucket, ": must be the name of a bucket, without a folder"));
  }
  if (target.tier.empty()) target.tier = std::string(kDefaultTier);
  return target;
}

absl::Status VertexPlatform::Prepare(job::Submission& submission) {
  job::VertexTarget own = job::TargetOf<job::VertexTarget>(submission);
  own.run.custom_job.clear();
  own.run.run_sha256.clear();
  own.run.agent_sha256.clear();
  own.run.asked_us = 0;
  MUSTER_RETURN_IF_ERROR(CheckRegion(own.region.empty() ? kDefaultRegion : own.region));
  MUSTER_RETURN_IF_ERROR(CheckJobId(submission.id));
  job::JobSpec& spec = submission.spec;
  MUSTER_RETURN_IF_ERROR(ApplyOverrides(own, spec));
  if (own.tier.empty()) own.tier = std::string(kDefaultTier);
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(spec));
  MUSTER_ASSIGN_OR_RETURN(const auto machines, MachinesFor(own, pools));
  if (LeavesGpusIdle(spec, pools, machines)) {
    Note(absl::StrCat("the built-in trainer uses only CPUs, so the GPUs of ", own.tier,
                      " will be idle; BASIC, STANDARD_1 and PREMIUM_1 have none"));
  }
  if (NeedsAgent(spec)) MUSTER_RETURN_IF_ERROR(FindAgent(environment_.program).status());
  MUSTER_RETURN_IF_ERROR(CheckFiles(submission, own));
  MUSTER_ASSIGN_OR_RETURN(job::VertexTarget target, Resolve(std::move(own)));
  if (const auto doubts = RegionWarning(target.region)) {
    // Checks an unknown region before anything is created there.
    const absl::Status known = FindOurs(target, submission.id).status();
    if (!known.ok() && !absl::IsNotFound(known)) return base::Annotate(known, *doubts);
    Note(*doubts);
  }
  MUSTER_RETURN_IF_ERROR(FollowChain(submission, target));
  submission.target = target;
  return CustomJobOf(submission, environment_.version).status();
}

std::vector<platform::Image> VertexPlatform::RequiredImages(
    const job::Submission& submission) const {
  const std::string repository = job::TargetOf<job::VertexTarget>(submission).image_repository;
  if (repository.empty()) return {};
  platform::Image image = ImageIn(repository, environment_.version);
  const auto custom_job = CustomJobOf(submission, environment_.version);
  if (!custom_job.ok() || !platform::Mentions(Json(*custom_job), image)) return {};
  return {std::move(image)};
}

absl::StatusOr<cluster::ClusterSpec> VertexPlatform::Addresses(
    const job::Submission& submission) const {
  cluster::ClusterSpec cluster;
  for (const cluster::TaskId& task : submission.spec.Tasks())
    cluster.Set(task, platform::kUnassigned);
  return cluster;
}

absl::StatusOr<job::TaskLaunch> VertexPlatform::LaunchOf(const job::Submission& submission,
                                                         const cluster::ClusterSpec& cluster,
                                                         const cluster::TaskId& task) const {
  return job::BuildTaskLaunch(submission.spec, cluster, task,
                              {.job_id = submission.id,
                               .working_dir = "/tmp/muster/work",
                               .trainer = "muster-trainer",
                               .train_config = "/tmp/muster/train.json",
                               .run_dir = "/tmp/muster/run",
                               .user_set_omp = true,
                               .resumed = !submission.resumed_from.empty(),
                               .resume_step = submission.resume_step});
}

absl::StatusOr<Json> VertexPlatform::FindOurs(const job::VertexTarget& target,
                                              const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow(target.region));
  MUSTER_ASSIGN_OR_RETURN(
      auto jobs, client->ListJobs(target.project, target.region, LabelFilter(kJobLabel, id)));
  // The service may ignore the filter, and another user may have the same id in another bucket.
  std::erase_if(jobs, [&](const Json& job) {
    return LabelOf(job, kJobLabel) != id ||
           (!target.run.tries.empty() && LabelOf(job, kRunLabel) != target.run.nonce());
  });
  if (!jobs.empty()) return std::move(jobs.front());
  return absl::NotFoundError(absl::StrCat("there is no job '", id, "' on Vertex AI in project ",
                                          target.project, ", region ", target.region));
}

absl::StatusOr<Json> VertexPlatform::Find(const job::JobRecord& job, job::Submission& submission) {
  const job::VertexTarget target = job::TargetOf<job::VertexTarget>(submission);
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow(target.region));
  if (!target.run.custom_job.empty()) return client->GetJob(target.run.custom_job);
  auto found = FindOurs(target, submission.id);
  if (absl::IsNotFound(found.status()) &&
      absl::Now() < absl::FromUnixMicros(target.run.asked_us) + kAppearTimeout) {
    return absl::UnknownError(
        "Vertex AI did not confirm that it created the job, and does not list it yet");
  }
  MUSTER_RETURN_IF_ERROR(found.status());
  job::MutableTargetOf<job::VertexTarget>(submission).run.custom_job = found->value("name", "");
  supervise::JobDir(job.directory)
      .SaveSubmission(submission)
      .IgnoreError();  // else it is looked up again
  return found;
}

absl::StatusOr<std::vector<job::JobRecord>> VertexPlatform::List(const job::Target& where) {
  MUSTER_ASSIGN_OR_RETURN(const job::VertexTarget target,
                          Resolve(std::get<job::VertexTarget>(where)));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(const auto listed, client->ListJobs(target.project, target.region));
  std::vector<job::JobRecord> jobs;
  jobs.reserve(listed.size());
  for (const Json& job : listed) jobs.push_back(RecordOf(job, absl::Now()));
  std::stable_sort(jobs.begin(), jobs.end(), [](const job::JobRecord& a, const job::JobRecord& b) {
    return a.created > b.created;
  });
  return jobs;
}

absl::StatusOr<job::Submission> VertexPlatform::Import(const std::string& id,
                                                       const job::Target& where) {
  MUSTER_ASSIGN_OR_RETURN(job::VertexTarget target, Resolve(std::get<job::VertexTarget>(where)));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const auto found = IsNumber(id)
                         ? client->GetJob(absl::StrCat("projects/", target.project, "/locations/",
                                                       target.region, "/customJobs/", id))
                         : FindOurs(target, id);
  MUSTER_RETURN_IF_ERROR(found.status());
  const job::JobRecord record = RecordOf(*found, absl::Now());
  target.run.custom_job = found->value("name", "");
  job::Submission submission{.id = record.id,
                             .spec = SpecOf(*found),
                             .source_name = id,
                             .working_dir = "/",
                             .created = record.created,
                             .target = target};
  submission.source = found->value("jobSpec", Json::object()).dump(2);
  return submission;
}

absl::StatusOr<FollowOptions> VertexPlatform::FollowOptionsOf(const job::JobRecord& job,
                                                              const job::Submission& submission) {
  const job::Policies& policies = submission.spec.policies;
  FollowOptions options{
      .job = job::TargetOf<job::VertexTarget>(submission).run.custom_job,
      .project = job::TargetOf<job::VertexTarget>(submission).project,
      .logs = supervise::JobDir(job.directory).logs(),
      .log = {.rotate_bytes = policies.log_rotate_bytes, .keep = policies.log_keep},
      .interval = interval_,
      .warn = [this](const absl::Status& status) {
        Note(absl::StrCat("not all of the output could be fetched: ", status.message()));
      }};
  MUSTER_ASSIGN_OR_RETURN(options.pools, PoolsOf(submission.spec));
  return options;
}

absl::StatusOr<std::optional<job::StateChange>> VertexPlatform::Observe(
    const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  auto found = Find(job, submission);
  if (absl::IsUnavailable(found.status()))
    failed_[job::TargetOf<job::VertexTarget>(submission).region] = absl::Now();
  Observation sight{.now = absl::Now()};
  if (found.ok()) {
    sight.job = *std::move(found);
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  MUSTER_ASSIGN_OR_RETURN(const FollowOptions follow, FollowOptionsOf(job, submission));
  return Compare(
      {.job = job,
       .tasks = tasks,
       .submission = submission,
       .last_lines = [&](const cluster::TaskId& task) { return LastLines(follow, task); }},
      sight);
}

std::vector<platform::Machine> VertexPlatform::Machines(const job::JobRecord& job,
                                                        const std::vector<job::TaskRecord>& tasks) {
  std::vector<platform::Machine> machines = platform::MachinesOf(tasks);
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  if (!submission.ok()) return machines;
  const auto& target = job::TargetOf<job::VertexTarget>(*submission);
  const auto pools = PoolsOf(submission->spec);
  const auto types = pools.ok() ? MachinesFor(target, *pools) : pools.status();
  for (platform::Machine& machine : machines) {
    machine.provider = "Google Cloud";
    machine.region = target.region;
    // Vertex AI reports the state of jobs only, so nothing is known of a single machine.
    if (machine.status == platform::kMachineConnected) {
      machine.status = std::string(job::ToString(job.state));
    }
    for (size_t i = 0; types.ok() && i < kPools; ++i) {
      if (absl::StartsWith(machine.name, absl::StrCat("workerpool", i, "-"))) {
        machine.size = ToString(types->at(i));
      }
    }
  }
  return machines;
}

// A failure report needs only the last lines, so the rest of the output is not copied here.
std::vector<std::string> VertexPlatform::LastLines(const FollowOptions& options,
                                                   const cluster::TaskId& task) {
  const LogQuery query{.job = std::string(JobNumber(options.job)),
                       .task = ReplicaName(options.pools, task)};
  const auto client = ClientNow();
  const auto entries = client.ok()
                           ? (*client)->TailLog(options.project, LogFilter(query), kLastLines)
                           : client.status();
  if (!entries.ok()) {
    options.warn(entries.status());
    return supervise::LastLines(options.logs, task, kLastLines);
  }
  std::vector<std::string> lines;
  for (const LogEntry& entry : *entries) {
    for (std::string& line : LinesOf(entry)) lines.push_back(std::move(line));
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return lines;
}

absl::Status VertexPlatform::Stop(const job::JobRecord& job, bool /*immediately*/) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(const Json found, Find(job, submission));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const absl::Status cancelled = client->CancelJob(found.value("name", ""));
  // The job has been deleted or has ended meanwhile.
  if (absl::IsNotFound(cancelled)) return absl::OkStatus();
  return cancelled;
}

absl::StatusOr<std::unique_ptr<platform::JobWatch>> VertexPlatform::Watch(
    const job::JobRecord& job) {
  if (job::IsFinal(job.state)) return absl::UnavailableError(absl::StrCat(job.id, " has ended"));
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  MUSTER_RETURN_IF_ERROR(Find(job, submission).status());
  MUSTER_ASSIGN_OR_RETURN(FollowOptions options, FollowOptionsOf(job, submission));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  return Follower::Start(*client, std::move(options));
}

absl::StatusOr<std::unique_ptr<supervise::LogStream>> VertexPlatform::Logs(
    const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(const FollowOptions options, FollowOptionsOf(job, submission));
  if (!options.job.empty() && !IsFullyCopied(options)) {
    const auto client = ClientNow(job::TargetOf<job::VertexTarget>(submission).region);
    const auto ended = job::IsFinal(job.state) ? job.finished : std::nullopt;
    const absl::Status copied =
        client.ok() ? CopyOutput(**client, options, ended).status() : client.status();
    if (!copied.ok()) options.warn(copied);
  }
  return std::make_unique<supervise::MergedLogReader>(options.logs, tasks);
}

absl::Status VertexPlatform::SetPollingInterval(absl::Duration interval) {
  if (interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--polling-interval must be more than 0");
  }
  interval_ = interval;
  return absl::OkStatus();
}

absl::Status VertexPlatform::CheckId(const std::string& id) const { return CheckJobId(id); }

bool VertexPlatform::IsUnmade(const job::Submission& submission) const {
  return job::TargetOf<job::VertexTarget>(submission).run.custom_job.empty();
}

// Submit() recognizes by the nonces which folder and which custom job earlier submissions of the id
// may have left.
void VertexPlatform::ReuseId(const job::Submission* unmade, job::Submission& next) const {
  job::VertexRun& run = job::MutableTargetOf<job::VertexTarget>(next).run;
  run.tries.clear();
  if (unmade != nullptr) run.tries = job::TargetOf<job::VertexTarget>(*unmade).run.tries;
}

absl::StatusOr<job::Submission> VertexPlatform::EvaluationOf(
    const platform::EvaluationRequest& request) {
  return vertex::EvaluationOf(storage_, request);
}

std::string VertexPlatform::SetResultFile(job::Submission& submission) const {
  return vertex::SetResultFile(submission);
}

}  // namespace muster::vertex
