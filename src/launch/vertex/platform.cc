#include "launch/vertex/platform.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "job/parse.h"
#include "launch/job_dir.h"
#include "launch/vertex/custom_job.h"
#include "launch/vertex/machines.h"
#include "launch/vertex/observe.h"
#include "launch/vertex/package.h"
#include "launch/vertex/paths.h"
#include "launch/vertex/run_folder.h"
#include "storage/gs/bucket.h"
#include "storage/gs/credentials.h"

namespace muster::vertex {
namespace {

using Json = nlohmann::json;

constexpr int kLastLines = 10;
constexpr absl::Duration kUnreachableFor = absl::Seconds(10);
// How often, and how long, a job is looked for of which it is not known whether it was made.
constexpr int kLooks = 3;
constexpr absl::Duration kBetweenLooks = absl::Seconds(2);

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

absl::Status AtStep(absl::string_view step, const absl::Status& status) {
  return Annotate(status, absl::StrCat("failed at ", step));
}

// What the options say instead of the file.
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

bool NeedsTls(const JobSpec& spec) { return !spec.train.is_null() && spec.Tasks().size() > 1; }

}  // namespace

void VertexPlatform::Note(const std::string& text) const {
  if (options_.note) options_.note(text);
}

absl::StatusOr<Client*> VertexPlatform::ClientNow() {
  if (absl::Now() - failed_ < kUnreachableFor) return failure_;
  if (client_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(client_, Client::Create(ProcessVariables()));
  }
  return client_.get();
}

std::vector<std::string> VertexPlatform::Unsupported(const JobSpec& spec) const {
  std::vector<std::string> texts;
  for (Limit& limit : LimitsOf(spec)) texts.push_back(std::move(limit.what));
  for (const RoleSpec& role : spec.roles) {
    const auto image = ImageOf(role, {}, "");
    if (!image.ok()) texts.emplace_back(image.status().message());
  }
  return texts;
}

absl::StatusOr<Place> VertexPlatform::Resolve(Place place) {
  if (place.region.empty()) place.region = kDefaultRegion;
  MUSTER_RETURN_IF_ERROR(CheckRegion(place.region));
  if (place.project.empty()) place.project = storage::GoogleProject(ProcessVariables());
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  // Without credentials the project is not what is missing.
  if (const absl::Status known = client->SignIn(); !known.ok()) {
    return Annotate(known, "credentials");
  }
  if (place.project.empty()) {
    return absl::InvalidArgumentError(
        "which project? Say --project ID, or set GOOGLE_CLOUD_PROJECT; `gcloud projects list` "
        "lists them");
  }
  if (place.bucket.empty()) {
    place.bucket =
        absl::StrCat("muster-", absl::StrReplaceAll(place.project, {{":", "-"}, {".", "-"}}));
  }
  place.bucket = std::string(absl::StripSuffix(absl::StripPrefix(place.bucket, "gs://"), "/"));
  MUSTER_RETURN_IF_ERROR(storage::ParseUrl(absl::StrCat("gs://", place.bucket, "/x")).status());
  if (absl::StrContains(place.bucket, '/')) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bucket ", place.bucket, ": must be the name of a bucket, without a folder"));
  }
  if (place.tier.empty()) place.tier = std::string(kDefaultTier);
  return place;
}

// A run that continues another one writes to the folder of the first of them all.
absl::Status VertexPlatform::FollowChain(Submission& submission, Place& place) {
  if (submission.resumed_from.empty()) {
    if (!storage::IsRemote(submission.spec.model_dir) ||
        submission.spec.model_dir == place.folder) {
      submission.spec.model_dir = place.FolderOf(submission.id);
    }
    place.folder = submission.spec.model_dir;
    return absl::OkStatus();
  }
  const std::string& id = submission.resumed_from;
  const auto before = ReadRun(storage_, place.FolderOf(id));
  if (absl::IsNotFound(before.status())) {
    return absl::NotFoundError(absl::StrCat(
        "there is no job '", id, "' to resume: gs://", place.bucket, " has no folder muster_", id,
        "; `muster jobs --on vertex` lists jobs, and --bucket must name the bucket of that one"));
  }
  MUSTER_RETURN_IF_ERROR(before.status());
  const auto job = FindOurs(place, id);
  if (job.ok() && !EndOf(*job, absl::Now())) {
    return absl::FailedPreconditionError(
        absl::StrCat(id, " has not ended; stop it before it is resumed: muster stop ", id));
  }
  place.folder = before->spec.model_dir;
  submission.spec.model_dir = place.folder;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WorkFile>> VertexPlatform::FilesOf(const Submission& submission,
                                                              bool notice) const {
  return ListWorkDir(submission.working_dir,
                     {.home = options_.home,
                      .keys = storage::GoogleCredentialFiles(ProcessVariables()),
                      .notice = notice ? options_.note : nullptr});
}

absl::Status VertexPlatform::CheckFiles(const Submission& submission, const Place& place) const {
  if (!place.packages.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto files, FilesOf(submission, /*notice=*/false));
  return CheckPaths(submission.spec, submission.working_dir, [&files](absl::string_view path) {
    return std::any_of(files.begin(), files.end(), [path](const WorkFile& file) {
      return path.empty() || file.path == path ||
             absl::StartsWith(file.path, absl::StrCat(path, "/"));
    });
  });
}

absl::Status VertexPlatform::Prepare(Submission& submission) {
  Place own = Place::Of(submission);
  own.job.clear();
  MUSTER_RETURN_IF_ERROR(CheckRegion(own.region.empty() ? kDefaultRegion : own.region));
  MUSTER_RETURN_IF_ERROR(CheckJobId(submission.id));
  JobSpec& spec = submission.spec;
  std::vector<std::string> refused;
  for (const Limit& limit : LimitsOf(spec)) {
    if (limit.fatal) {
      refused.push_back(limit.what);
    } else {
      Note(absl::StrCat("Vertex AI does not do what the file asks: ", limit.what));
    }
  }
  if (!refused.empty()) return absl::InvalidArgumentError(absl::StrJoin(refused, "\n"));
  MUSTER_RETURN_IF_ERROR(SetReplicas("--worker-count", "worker", own.workers, spec));
  MUSTER_RETURN_IF_ERROR(
      SetReplicas("--parameter-server-count", "ps", own.parameter_servers, spec));
  MUSTER_RETURN_IF_ERROR(SetDataset(own.dataset, spec));
  if (own.tier.empty()) own.tier = std::string(kDefaultTier);
  MUSTER_ASSIGN_OR_RETURN(const Pools pools, PoolsOf(spec));
  MUSTER_RETURN_IF_ERROR(MachinesFor(own, pools).status());
  MUSTER_RETURN_IF_ERROR(CheckFiles(submission, own));
  MUSTER_ASSIGN_OR_RETURN(Place place, Resolve(std::move(own)));
  MUSTER_RETURN_IF_ERROR(FollowChain(submission, place));
  submission.place = place.ToJson();
  return CustomJobOf(submission, options_.version).status();
}

std::string VertexPlatform::Describe(const Submission& submission) const {
  const Place place = Place::Of(submission);
  return absl::StrCat("on Vertex AI, in project '", place.project, "', region ", place.region);
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

// What was sent, in words.
absl::StatusOr<std::string> VertexPlatform::SendFiles(Submission& submission, const Place& place) {
  MUSTER_ASSIGN_OR_RETURN(auto files, FilesOf(submission, /*notice=*/true));
  MUSTER_ASSIGN_OR_RETURN(const std::string cache,
                          WorkDirCache(options_.home, submission.working_dir));
  MUSTER_RETURN_IF_ERROR(HashFiles(submission.working_dir, files, cache).status());
  MUSTER_ASSIGN_OR_RETURN(
      const Sent sent,
      SendPackages(storage_,
                   {.root = submission.working_dir, .bucket = place.bucket, .again = place.rebuild},
                   files));
  submission.place["packages"] = sent.packages;
  return absl::StrCat(
      files.size(), " files of the working directory, ",
      sent.bytes == 0 ? "all there already" : absl::StrCat(FormatBytes(sent.bytes), " sent"));
}

absl::StatusOr<std::string> VertexPlatform::Create(const Submission& submission) {
  const Place place = Place::Of(submission);
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(const auto body, CustomJobOf(submission, options_.version));
  auto made = client->CreateJob(place.project, place.region, body);
  // Without an answer it may be there all the same.
  for (int i = 0; i < kLooks && absl::IsUnavailable(made.status()); ++i) {
    absl::SleepFor(i * kBetweenLooks);
    if (auto found = FindOurs(place, submission.id); found.ok()) made = *std::move(found);
  }
  MUSTER_RETURN_IF_ERROR(made.status());
  const std::string resource_name = made->value("name", "");
  if (resource_name.empty()) return absl::DataLossError("Vertex AI: the new job has no name");
  return resource_name;
}

// Of a submission that was killed there may be a folder, which is known by its time; a job there is
// not.
absl::Status VertexPlatform::MakeRoom(const Place& place, const std::string& id) {
  const std::vector<int64_t>& times = place.retried_us;
  if (times.empty()) return absl::OkStatus();
  const auto left = ReadRun(storage_, place.FolderOf(id));
  if (!left.ok()) return absl::OkStatus();
  const int64_t time = absl::ToUnixMicros(left->created);
  if (std::find(times.begin(), times.end(), time) == times.end()) return absl::OkStatus();
  if (!absl::IsNotFound(FindOurs(place, id).status())) return absl::OkStatus();
  return RemoveRun(storage_, place.FolderOf(id));
}

absl::Status VertexPlatform::Submit(const Submission& submission, const JobRecord& record) {
  const JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(submission));
  const Place place = Place::Of(submission);
  MUSTER_ASSIGN_OR_RETURN(const auto client, storage::GsClient::FromVariables(ProcessVariables()));
  MUSTER_RETURN_IF_ERROR(AtStep(
      "the bucket",
      storage::EnsureBucket(
          *client, {.name = place.bucket, .project = place.project, .location = place.region})));
  Submission run = submission;
  if (place.packages.empty()) {
    const auto sent = SendFiles(run, place);
    MUSTER_RETURN_IF_ERROR(AtStep("the package of the working directory", sent.status()));
    Note(*sent);
  }
  std::optional<JobTls> tls;
  if (NeedsTls(run.spec)) {
    MUSTER_ASSIGN_OR_RETURN(tls, MakeJobTls(run.id));
  }
  const std::string folder = place.FolderOf(run.id);
  MUSTER_RETURN_IF_ERROR(AtStep("the folder of the run", MakeRoom(place, run.id)));
  MUSTER_RETURN_IF_ERROR(AtStep("the folder of the run", WriteRun(storage_, folder, run, tls)));
  const auto made = Create(run);
  if (!made.ok()) {
    const absl::Status removed = RemoveRun(storage_, folder);
    if (!removed.ok()) Note(absl::StrCat("to be removed by hand: ", folder));
    return AtStep("the submission to Vertex AI", made.status());
  }
  run.place["custom_job"] = *made;
  Note(absl::StrCat("submitted ", *made, "; its folder is ", folder));
  return dir.SaveSubmission(run);
}

absl::StatusOr<Json> VertexPlatform::FindOurs(const Place& place, const std::string& id) {
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(auto jobs,
                          client->ListJobs(place.project, place.region,
                                           absl::StrCat("labels.", kJobLabel, "=\"", id, "\"")));
  // A service that does not know such filters sends all.
  std::erase_if(jobs, [&id](const Json& job) { return RecordOf(job, absl::Now()).id != id; });
  if (!jobs.empty()) return std::move(jobs.front());
  return absl::NotFoundError(absl::StrCat("there is no job '", id, "' on Vertex AI in project ",
                                          place.project, ", region ", place.region));
}

absl::StatusOr<Json> VertexPlatform::Find(const JobRecord& job, Submission& submission) {
  const Place place = Place::Of(submission);
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  if (!place.job.empty()) return client->GetJob(place.job);
  MUSTER_ASSIGN_OR_RETURN(Json found, FindOurs(place, submission.id));
  submission.place["custom_job"] = found.value("name", "");
  JobDir(job.directory).SaveSubmission(submission).IgnoreError();  // else it is looked for again
  return found;
}

absl::StatusOr<std::vector<JobRecord>> VertexPlatform::List(const nlohmann::json& where) {
  MUSTER_ASSIGN_OR_RETURN(const Place place, Resolve(Place::Of({.place = where})));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  MUSTER_ASSIGN_OR_RETURN(const auto listed, client->ListJobs(place.project, place.region));
  std::vector<JobRecord> jobs;
  jobs.reserve(listed.size());
  for (const Json& job : listed) jobs.push_back(RecordOf(job, absl::Now()));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobRecord& a, const JobRecord& b) { return a.created > b.created; });
  return jobs;
}

absl::StatusOr<Submission> VertexPlatform::Import(const std::string& id,
                                                  const nlohmann::json& where) {
  MUSTER_ASSIGN_OR_RETURN(Place place, Resolve(Place::Of({.place = where})));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const auto found = IsNumber(id)
                         ? client->GetJob(absl::StrCat("projects/", place.project, "/locations/",
                                                       place.region, "/customJobs/", id))
                         : FindOurs(place, id);
  MUSTER_RETURN_IF_ERROR(found.status());
  const JobRecord record = RecordOf(*found, absl::Now());
  place.job = found->value("name", "");
  Submission submission{.id = record.id,
                        .spec = SpecOf(*found),
                        .source_name = id,
                        .working_dir = "/",
                        .created = record.created,
                        .place = place.ToJson()};
  submission.source = found->value("jobSpec", Json::object()).dump(2);
  return submission;
}

absl::StatusOr<FollowOptions> VertexPlatform::FollowOptionsOf(const JobRecord& job,
                                                              const Submission& submission) {
  const Policies& policies = submission.spec.policies;
  FollowOptions options{
      .job = Place::Of(submission).job,
      .project = Place::Of(submission).project,
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
  if (absl::IsUnavailable(found.status())) {
    failure_ = found.status();
    failed_ = absl::Now();
  }
  Sight sight{.now = absl::Now()};
  if (found.ok()) {
    sight.job = *std::move(found);
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  MUSTER_ASSIGN_OR_RETURN(const FollowOptions follow, FollowOptionsOf(job, submission));
  if (sight.job && EndOf(*sight.job, sight.now) && !IsFinal(job.state)) {
    MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
    // The last lines belong to the report.
    const auto copied = CopyOutput(*client, follow, EndOf(*sight.job, sight.now));
    if (!copied.ok()) follow.warn(copied.status());
  }
  return Compare(
      {.job = job,
       .tasks = tasks,
       .submission = submission,
       .last_lines =
           [&follow](const TaskId& task) { return LastLines(follow.logs, task, kLastLines); }},
      sight);
}

absl::Status VertexPlatform::Stop(const JobRecord& job, bool /*at_once*/) {
  MUSTER_ASSIGN_OR_RETURN(Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(const Json found, Find(job, submission));
  MUSTER_ASSIGN_OR_RETURN(Client * client, ClientNow());
  const absl::Status cancelled = client->CancelJob(found.value("name", ""));
  // It is not there any more, or has ended meanwhile.
  if (absl::IsNotFound(cancelled)) return absl::OkStatus();
  return cancelled;
}

absl::StatusOr<UpdatePlan> VertexPlatform::PlanUpdate(const JobRecord& job,
                                                      const std::vector<TaskRecord>&,
                                                      const Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const Submission current, JobDir(job.directory).LoadSubmission());
  JobSpec spec = next.spec;
  spec.model_dir = current.spec.model_dir;
  if (spec == current.spec) return UpdatePlan{};
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
    const auto client = ClientNow();
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
