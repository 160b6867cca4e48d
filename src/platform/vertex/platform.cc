#include "platform/vertex/platform.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "job/parse.h"
#include "platform/vertex/custom_job.h"
#include "platform/vertex/log_copy.h"
#include "platform/vertex/machines.h"
#include "platform/vertex/observe.h"
#include "platform/vertex/run_folder.h"
#include "storage/gs/credentials.h"
#include "supervise/job_dir.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr int kLastLines = 10;
constexpr absl::Duration kUnreachableFor = absl::Seconds(10);
// A requested job may take this long to appear in the service's list.
constexpr absl::Duration kMayAppear = absl::Minutes(10);

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// Applies an option that overrides the job file.
absl::Status SetReplicas(absl::string_view option, const char* role_name,
                         const std::optional<int>& count, JobSpec& spec) {
  if (!count) return absl::OkStatus();
  const auto role = std::find_if(spec.roles.begin(), spec.roles.end(),
                                 [&](const RoleSpec& other) { return other.name == role_name; });
  if (role == spec.roles.end()) {
    if (*count == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": the job has no role '", role_name, "'; add it to the file"));
  }
  if (*count == 0) {
    return absl::InvalidArgumentError(absl::StrCat(option, " is 0, and the job has a role '",
                                                   role_name, "'; remove it from the file"));
  }
  if (*count > kMaxReplicas) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is ", *count, "; at most ", kMaxReplicas));
  }
  role->replicas = *count;
  role->addresses.clear();
  return absl::OkStatus();
}

absl::Status SetDataset(const std::string& dataset, JobSpec& spec) {
  if (dataset.empty()) return absl::OkStatus();
  if (!storage::IsRemote(dataset)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dataset ", dataset,
                     ": must be a URL that its tasks can read, such as gs://BUCKET/data"));
  }
  if (!spec.train.is_object()) {
    return absl::InvalidArgumentError(
        "--dataset is for the built-in trainer: the job has no `train` section, and its commands "
        "say "
        "themselves where their data is");
  }
  spec.train["data"]["path"] = dataset;
  return absl::OkStatus();
}

}  // namespace

void VertexPlatform::Note(const std::string& text) const {
  if (options_.note) options_.note(text);
}

absl::StatusOr<Client*> VertexPlatform::ClientNow(const std::string& region) {
  const auto failed = failed_.find(region);
  // The stored failure would name the job of an earlier caller.
  if (failed != failed_.end() && absl::Now() - failed->second < kUnreachableFor) {
    return absl::UnavailableError(
        absl::StrCat("Vertex AI in ", region,
                     " did not answer a moment ago; it is asked again in a few seconds"));
  }
  if (client_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(client_, Client::Create(ProcessVariables()));
  }
  return client_.get();
}

std::vector<Limit> VertexPlatform::Unsupported(const Submission& submission) const {
  std::vector<Limit> limits = LimitsOf(submission.spec);
  for (const RoleSpec& role : submission.spec.roles) {
    const auto image = ImageOf(role, TargetOf<VertexTarget>(submission), "");
    if (image.ok()) continue;
    limits.push_back({.what = std::string(image.status().message()), .fatal = true});
  }
  return limits;
}

absl::StatusOr<VertexTarget> VertexPlatform::Resolve(VertexTarget target) {
  if (target.region.empty()) target.region = kDefaultRegion;
  MUSTER_RETURN_IF_ERROR(CheckRegion(target.region));
  if (target.project.empty()) target.project = storage::GoogleProject(ProcessVariables());
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow(target.region));
  // Checked before the project: without credentials the project is not what is missing.
  if (const absl::Status known = client->SignIn(); !known.ok()) {
    return Annotate(known, "credentials");
  }
  if (target.project.empty()) {
    return absl::InvalidArgumentError(
        "which project? Say --project ID, or set GOOGLE_CLOUD_PROJECT; `gcloud projects list` "
        "lists them");
  }
  if (target.bucket.empty()) {
    target.bucket =
        absl::StrCat("muster-", absl::StrReplaceAll(target.project, {{":", "-"}, {".", "-"}}));
  }
  target.bucket = std::string(absl::StripSuffix(absl::StripPrefix(target.bucket, "gs://"), "/"));
  MUSTER_RETURN_IF_ERROR(storage::ParseUrl(absl::StrCat("gs://", target.bucket, "/x")).status());
  if (absl::StrContains(target.bucket, '/')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bucket ", target.bucket, ": must be the name of a bucket, without a folder"));
  }
  if (target.tier.empty()) target.tier = std::string(kDefaultTier);
  return target;
}

absl::Status VertexPlatform::Prepare(Submission& submission) {
  VertexTarget own = TargetOf<VertexTarget>(submission);
  own.run.custom_job.clear();
  own.run.run_sha256.clear();
  own.run.asked_us = 0;
  MUSTER_RETURN_IF_ERROR(CheckRegion(own.region.empty() ? kDefaultRegion : own.region));
  MUSTER_RETURN_IF_ERROR(CheckJobId(submission.id));
  JobSpec& spec = submission.spec;
  MUSTER_RETURN_IF_ERROR(SetReplicas("--worker-count", "worker", own.workers, spec));
  MUSTER_RETURN_IF_ERROR(
      SetReplicas("--parameter-server-count", "ps", own.parameter_servers, spec));
  MUSTER_RETURN_IF_ERROR(SetDataset(own.dataset, spec));
  if (own.tier.empty()) own.tier = std::string(kDefaultTier);
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(spec));
  MUSTER_ASSIGN_OR_RETURN(const auto machines, MachinesFor(own, pools));
  if (LeavesGpusIdle(spec, pools, machines)) {
    Note(absl::StrCat("the built-in trainer computes on CPUs, and the GPUs of ", own.tier,
                      " will stand idle; BASIC, STANDARD_1 and PREMIUM_1 have none"));
  }
  MUSTER_RETURN_IF_ERROR(CheckFiles(submission, own));
  MUSTER_ASSIGN_OR_RETURN(VertexTarget target, Resolve(std::move(own)));
  if (const auto doubts = DoubtsAbout(target.region)) {
    // Checks an unknown region before anything is created there.
    const absl::Status known = FindOurs(target, submission.id).status();
    if (!known.ok() && !absl::IsNotFound(known)) return Annotate(known, *doubts);
    Note(*doubts);
  }
  MUSTER_RETURN_IF_ERROR(FollowChain(submission, target));
  submission.target = target;
  return CustomJobOf(submission, options_.version).status();
}

std::string VertexPlatform::Describe(const Submission& submission) const {
  const VertexTarget target = TargetOf<VertexTarget>(submission);
  return absl::StrCat("on Vertex AI, in project '", target.project, "', region ", target.region);
}

absl::StatusOr<ClusterSpec> VertexPlatform::Addresses(const Submission& submission) const {
  ClusterSpec cluster;
  for (const TaskId& task : submission.spec.Tasks()) cluster.Set(task, kUnassigned);
  return cluster;
}

absl::StatusOr<TaskLaunch> VertexPlatform::LaunchOf(const Submission& submission,
                                                    const ClusterSpec& cluster,
                                                    const TaskId& task) const {
  return BuildTaskLaunch(submission.spec, cluster, task,
                         {.job_id = submission.id,
                          .working_dir = "/tmp/muster/work",
                          .trainer = "muster-trainer",
                          .train_config = "/tmp/muster/train.json",
                          .run_dir = "/tmp/muster/run",
                          .user_set_omp = true,
                          .resumed = !submission.resumed_from.empty(),
                          .resume_step = submission.resume_step});
}

absl::StatusOr<Json> VertexPlatform::FindOurs(const VertexTarget& target, const std::string& id) {
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

absl::StatusOr<Json> VertexPlatform::Find(const JobRecord& job, Submission& submission) {
  const VertexTarget target = TargetOf<VertexTarget>(submission);
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow(target.region));
  if (!target.run.custom_job.empty()) return client->GetJob(target.run.custom_job);
  auto found = FindOurs(target, submission.id);
  if (absl::IsNotFound(found.status()) &&
      absl::Now() < absl::FromUnixMicros(target.run.asked_us) + kMayAppear) {
    return absl::UnknownError(
        "Vertex AI did not say whether it has made the job, and does not list it yet");
  }
  MUSTER_RETURN_IF_ERROR(found.status());
  MutableTargetOf<VertexTarget>(submission).run.custom_job = found->value("name", "");
  JobDir(job.directory).SaveSubmission(submission).IgnoreError();  // else it is looked up again
  return found;
}

absl::StatusOr<std::vector<JobRecord>> VertexPlatform::List(const Target& where) {
  MUSTER_ASSIGN_OR_RETURN(const VertexTarget target, Resolve(std::get<VertexTarget>(where)));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(const auto listed, client->ListJobs(target.project, target.region));
  std::vector<JobRecord> jobs;
  jobs.reserve(listed.size());
  for (const Json& job : listed) jobs.push_back(RecordOf(job, absl::Now()));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobRecord& a, const JobRecord& b) { return a.created > b.created; });
  return jobs;
}

absl::StatusOr<Submission> VertexPlatform::Import(const std::string& id, const Target& where) {
  MUSTER_ASSIGN_OR_RETURN(VertexTarget target, Resolve(std::get<VertexTarget>(where)));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const auto found = IsNumber(id)
                         ? client->GetJob(absl::StrCat("projects/", target.project, "/locations/",
                                                       target.region, "/customJobs/", id))
                         : FindOurs(target, id);
  MUSTER_RETURN_IF_ERROR(found.status());
  const JobRecord record = RecordOf(*found, absl::Now());
  target.run.custom_job = found->value("name", "");
  Submission submission{.id = record.id,
                        .spec = SpecOf(*found),
                        .source_name = id,
                        .working_dir = "/",
                        .created = record.created,
                        .target = target};
  submission.source = found->value("jobSpec", Json::object()).dump(2);
  return submission;
}

absl::StatusOr<FollowOptions> VertexPlatform::FollowOptionsOf(const JobRecord& job,
                                                              const Submission& submission) {
  const Policies& policies = submission.spec.policies;
  FollowOptions options{
      .job = TargetOf<VertexTarget>(submission).run.custom_job,
      .project = TargetOf<VertexTarget>(submission).project,
      .logs = JobDir(job.directory).logs(),
      .log = {.rotate_bytes = policies.log_rotate_bytes, .keep = policies.log_keep},
      .interval = interval_,
      .warn = [this](const absl::Status& status) {
        Note(absl::StrCat("not all of the output could be fetched: ", status.message()));
      }};
  MUSTER_ASSIGN_OR_RETURN(options.pools, PoolsOf(submission.spec));
  return options;
}

absl::StatusOr<std::optional<StateChange>> VertexPlatform::Observe(
    const JobRecord& job, const std::vector<TaskRecord>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(job.directory).LoadSubmission());
  auto found = Find(job, submission);
  if (absl::IsUnavailable(found.status()))
    failed_[TargetOf<VertexTarget>(submission).region] = absl::Now();
  Sight sight{.now = absl::Now()};
  if (found.ok()) {
    sight.job = *std::move(found);
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  MUSTER_ASSIGN_OR_RETURN(const FollowOptions follow, FollowOptionsOf(job, submission));
  return Compare({.job = job,
                  .tasks = tasks,
                  .submission = submission,
                  .last_lines = [&](const TaskId& task) { return LastWords(follow, task); }},
                 sight);
}

// A failure report needs only the last lines, so the rest of the output is not copied here.
std::vector<std::string> VertexPlatform::LastWords(const FollowOptions& options,
                                                   const TaskId& task) {
  const LogQuery query{.job = std::string(JobNumber(options.job)),
                       .task = ReplicaName(options.pools, task)};
  const auto client = ClientNow();
  const auto entries = client.ok()
                           ? (*client)->TailLog(options.project, LogFilter(query), kLastLines)
                           : client.status();
  if (!entries.ok()) {
    options.warn(entries.status());
    return LastLines(options.logs, task, kLastLines);
  }
  std::vector<std::string> lines;
  for (const LogEntry& entry : *entries) {
    for (std::string& line : LinesOf(entry)) lines.push_back(std::move(line));
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return lines;
}

absl::Status VertexPlatform::Stop(const JobRecord& job, bool /*immediately*/) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(const Json found, Find(job, submission));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const absl::Status cancelled = client->CancelJob(found.value("name", ""));
  // The job has been deleted or has ended meanwhile.
  if (absl::IsNotFound(cancelled)) return absl::OkStatus();
  return cancelled;
}

absl::StatusOr<UpdatePlan> VertexPlatform::PlanUpdate(const JobRecord& job,
                                                      const std::vector<TaskRecord>&,
                                                      const Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const Submission current, JobDir(job.directory).LoadSubmission());
  JobSpec spec = next.spec;
  spec.model_dir = current.spec.model_dir;
  const bool resumes = !next.resumed_from.empty() && next.resumed_from != current.resumed_from;
  VertexTarget asked = TargetOf<VertexTarget>(next);
  asked.run = TargetOf<VertexTarget>(current).run;
  if (spec == current.spec && !resumes && asked == TargetOf<VertexTarget>(current)) {
    return UpdatePlan{};
  }
  return absl::FailedPreconditionError(absl::StrCat(
      job.id, " is running, and a job on Vertex AI cannot be changed: stop it (muster stop ",
      job.id, ") and go on from its checkpoint with --resume ", job.id,
      ", or give this job another name"));
}

absl::Status VertexPlatform::Update(const JobRecord& job, const Submission&) {
  return absl::FailedPreconditionError(
      absl::StrCat(job.id, ": jobs on Vertex AI stay as they are"));
}

absl::StatusOr<std::unique_ptr<JobWatch>> VertexPlatform::Watch(const JobRecord& job) {
  if (IsFinal(job.state)) return absl::UnavailableError(absl::StrCat(job.id, " has ended"));
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_RETURN_IF_ERROR(Find(job, submission).status());
  MUSTER_ASSIGN_OR_RETURN(FollowOptions options, FollowOptionsOf(job, submission));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  return Follower::Start(*client, std::move(options));
}

absl::StatusOr<std::unique_ptr<LogStream>> VertexPlatform::Logs(const JobRecord& job,
                                                                const std::vector<TaskId>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(const FollowOptions options, FollowOptionsOf(job, submission));
  if (!options.job.empty() && !IsWhole(options)) {
    const auto client = ClientNow(TargetOf<VertexTarget>(submission).region);
    const auto ended = IsFinal(job.state) ? job.finished : std::nullopt;
    const absl::Status copied =
        client.ok() ? CopyOutput(**client, options, ended).status() : client.status();
    if (!copied.ok()) options.warn(copied);
  }
  return std::make_unique<MergedLogReader>(options.logs, tasks);
}

absl::Status VertexPlatform::SetPollingInterval(absl::Duration interval) {
  if (interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--polling-interval must be more than 0");
  }
  interval_ = interval;
  return absl::OkStatus();
}

absl::StatusOr<Submission> VertexPlatform::ReadTraining(const std::string& folder) {
  auto run = ReadRun(storage_, folder);
  if (!absl::IsNotFound(run.status())) return run;
  return absl::NotFoundError(absl::StrCat(
      run.status().message(), "; --train-folder is the folder of a run, gs://BUCKET/muster_ID"));
}

}  // namespace muster::vertex
