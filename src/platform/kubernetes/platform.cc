#include "platform/kubernetes/platform.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/bytes/digest.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "codec/yaml_writer.h"
#include "job/format/parse.h"
#include "k8s/connect.h"
#include "k8s/error.h"
#include "manifest/images.h"
#include "manifest/manifests.h"
#include "manifest/names.h"
#include "platform/kubernetes/apply.h"
#include "platform/kubernetes/limits.h"
#include "platform/kubernetes/nodes.h"
#include "platform/kubernetes/notebook.h"
#include "supervise/job_dir.h"
#include "worktree/credentials.h"

namespace muster::kubernetes {
namespace {

constexpr int kLastLines = 10;
constexpr absl::Duration kReadTimeout = absl::Seconds(5);
// After a failure, calls fail fast for this long, so that a listing of many jobs waits only once.
constexpr absl::Duration kUnreachableFor = absl::Seconds(10);

class FollowerWatch final : public platform::JobWatch {
 public:
  explicit FollowerWatch(std::shared_ptr<Follower> follower) : follower_(std::move(follower)) {}
  int fd() const override { return follower_->fd(); }
  bool Drain() override { return follower_->Drain(); }

 private:
  std::shared_ptr<Follower> follower_;
};

FollowOptions FollowOptionsOf(const job::JobRecord& job, const job::Submission& submission) {
  const job::Policies& policies = submission.spec.policies;
  return {.job = KeyOf(submission),
          .uid = job::TargetOf<job::KubernetesTarget>(submission).object.uid,
          .logs = supervise::JobDir(job.directory).logs(),
          .log = {.rotate_bytes = policies.log_rotate_bytes, .keep = policies.log_keep},
          .finish_grace = FinishGrace(submission.spec)};
}

// Replaces the error for an unknown resource: without the CRD there is no operator to run the job.
absl::Status Explain(const absl::Status& status) {
  if (!k8s::IsUnknownResource(status)) return status;
  return absl::FailedPreconditionError(
      "the cluster has no TFJob definition: `muster operator install` installs the operator that "
      "runs TFJobs, and `muster render` prints manifests that need no operator");
}

// Returns true if `job` has the name of the submission's TFJob but is another object.
bool IsOther(const job::Submission& submission, const Json& job) {
  const std::string uid = job::TargetOf<job::KubernetesTarget>(submission).object.uid;
  return !uid.empty() && k8s::UidOf(job) != uid;
}

// Returns true if the pod belongs to the TFJob with this uid, or has no owner yet.
bool BelongsTo(const std::string& uid, const Json& pod) {
  const std::string owner = k8s::ControllerOf(pod);
  return uid.empty() || owner.empty() || owner == uid;
}

// Returns the path of the file that marks the output as complete.
std::string CompleteMarker(const FollowOptions& options) {
  return base::JoinPath(options.logs, "whole");
}

// Returns FailedPrecondition if a role that got files in the job to resume gets none any more.
absl::Status CheckResumable(const job::Submission& submission, const job::KubernetesFiles& before,
                            const job::KubernetesFiles& now) {
  if (submission.resumed_from.empty()) return absl::OkStatus();
  for (const std::string& role : before.roles) {
    if (std::find(now.roles.begin(), now.roles.end(), role) != now.roles.end()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the files that the command of '", role, "' names are no longer in ",
                     submission.working_dir, "; restore them, or start the job with muster run"));
  }
  return absl::OkStatus();
}

}  // namespace

KubernetesPlatform::KubernetesPlatform(platform::Traits traits, platform::Environment environment)
    : Platform(std::move(traits)), environment_(std::move(environment)) {}

absl::StatusOr<KubernetesPlatform::Connection*> KubernetesPlatform::ConnectionFor(
    const job::KubernetesTarget& target) {
  Connection& connection = connections_[absl::StrCat(target.kubeconfig, "\n", target.context)];
  if (connection.client == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(connection.client, k8s::Connect(target.kubeconfig, target.context,
                                                            {.on_warning = environment_.notify}));
  }
  return &connection;
}

absl::StatusOr<k8s::Client*> KubernetesPlatform::ClientFor(const job::KubernetesTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(Connection * connection, ConnectionFor(target));
  // The stored failure would name the request, and thus the job, of an earlier caller.
  if (absl::Now() - connection->failed < kUnreachableFor) {
    return absl::UnavailableError(
        absl::StrCat(connection->client->transport().config().server,
                     " did not respond a moment ago; try again in a few seconds"));
  }
  return connection->client.get();
}

absl::StatusOr<job::KubernetesTarget> KubernetesPlatform::Resolve(job::KubernetesTarget target,
                                                                  const std::string& ns) {
  if (target.kubeconfig.empty()) target.kubeconfig = k8s::KubeconfigFiles(base::ProcessVariables());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const k8s::ClusterConfig& config = client->transport().config();
  target.context = config.context;
  // A manifest without a namespace refers to the one of the current context.
  const bool named = !ns.empty() && ns != "default";
  if (target.ns.empty()) target.ns = named ? ns : config.ns;
  return target;
}

std::vector<platform::Limit> KubernetesPlatform::Unsupported(
    const job::Submission& submission) const {
  std::vector<platform::Limit> limits = LimitsOf(submission.spec);
  for (platform::Limit& limit : SelectFiles(submission).limits) limits.push_back(std::move(limit));
  const auto rendered = Render(submission);
  if (!rendered.ok()) {
    limits.push_back({.what = std::string(rendered.status().message()), .fatal = true});
  }
  return limits;
}

absl::Status KubernetesPlatform::Prepare(job::Submission& submission) {
  job::KubernetesTarget own = job::TargetOf<job::KubernetesTarget>(submission);
  if (!own.object.name.empty() && submission.spec.format == job::JobFormat::kNative) {
    return absl::FailedPreconditionError(
        absl::StrCat(own.object.name,
                     " was started by another client, which has its job file; run it from there"));
  }
  own.object.name.clear();  // every run of ours has its own TFJob
  own.object.uid.clear();
  MUSTER_ASSIGN_OR_RETURN(const PackedFiles packed, Pack(submission, /*notice=*/false));
  MUSTER_RETURN_IF_ERROR(CheckResumable(submission, own.files, packed.sent));
  own.files = packed.sent;
  MUSTER_ASSIGN_OR_RETURN(const job::KubernetesTarget target,
                          Resolve(std::move(own), submission.spec.kubernetes_namespace));
  submission.target = target;
  return Render(submission).status();
}

absl::StatusOr<std::vector<job::JobRecord>> KubernetesPlatform::List(const job::Target& where) {
  MUSTER_ASSIGN_OR_RETURN(const job::KubernetesTarget target,
                          Resolve(std::get<job::KubernetesTarget>(where), ""));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const auto listed = client->List(
      manifest::kTfJobs, {.selection = {.ns = target.ns}, .call = {.timeout = kReadTimeout}});
  if (!listed.ok()) return Explain(listed.status());
  std::vector<job::JobRecord> jobs;
  jobs.reserve(listed->items.size());
  for (const Json& item : listed->items) jobs.push_back(RecordOf(item, absl::Now()));
  std::stable_sort(jobs.begin(), jobs.end(), [](const job::JobRecord& a, const job::JobRecord& b) {
    return a.created > b.created;
  });
  return jobs;
}

absl::StatusOr<job::Submission> KubernetesPlatform::Import(const std::string& id,
                                                           const job::Target& where) {
  MUSTER_ASSIGN_OR_RETURN(job::KubernetesTarget target,
                          Resolve(std::get<job::KubernetesTarget>(where), ""));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const auto job = client->Get(manifest::kTfJobs, {target.ns, id}, {.timeout = kReadTimeout});
  if (!job.ok()) return Explain(job.status());
  target.object.name = id;
  target.object.uid = k8s::UidOf(*job);
  job::Submission submission{.source_name = id, .working_dir = "/", .target = target};
  submission.source = codec::ToYaml(manifest::Object({{"spec", (*job)["spec"]}}));
  MUSTER_ASSIGN_OR_RETURN(submission.spec, job::ParseTfJobObject(*job));
  submission.created = RecordOf(*job, absl::Now()).created;
  // A run of ours is unique by its name. The name of another job may be reused, so its uid is
  // added.
  const bool ours = k8s::LabelOf(*job, manifest::kJobLabel) == id;
  submission.id = ours ? id : absl::StrCat(id, "-", k8s::UidOf(*job).substr(0, 5));
  return submission;
}

absl::StatusOr<cluster::ClusterSpec> KubernetesPlatform::Addresses(
    const job::Submission& submission) const {
  return AddressesOf(submission);
}

std::optional<cluster::ClusterSpec> KubernetesPlatform::RenderedAddresses(
    const job::Submission& submission) const {
  if (submission.spec.format != job::JobFormat::kRenderedCluster) return std::nullopt;
  const std::string ns = job::TargetOf<job::KubernetesTarget>(submission).ns;
  return manifest::Addresses(submission.spec,
                             ns.empty() ? submission.spec.kubernetes_namespace : ns,
                             manifest::RenderOptions().domain);
}

absl::StatusOr<job::TaskLaunch> KubernetesPlatform::LaunchOf(const job::Submission& submission,
                                                             const cluster::ClusterSpec& cluster,
                                                             const cluster::TaskId& task) const {
  return manifest::PodLaunch(SpecInCluster(submission), cluster, task,
                             {.job_id = submission.id,
                              .trainer_image = "",
                              .files = job::TargetOf<job::KubernetesTarget>(submission).files});
}

std::string KubernetesPlatform::TrainerImageOf(const job::KubernetesTarget& target) const {
  if (!target.trainer_image.empty()) return target.trainer_image;
  if (target.image_repository.empty()) return manifest::TrainerImage(environment_.version);
  return platform::TrainerImage(target.image_repository, environment_.version).Reference();
}

std::vector<platform::Image> KubernetesPlatform::RequiredImages(
    const job::Submission& submission) const {
  const std::string repository = job::TargetOf<job::KubernetesTarget>(submission).image_repository;
  if (repository.empty()) return {};
  platform::Image image = platform::TrainerImage(repository, environment_.version);
  const auto rendered = Render(submission);
  if (!rendered.ok() || !platform::Mentions(Json(*rendered), image)) return {};
  return {std::move(image)};
}

absl::StatusOr<std::vector<manifest::Object>> KubernetesPlatform::Render(
    const job::Submission& submission, std::optional<job::JobTls> tls,
    std::vector<std::string> file_parts) const {
  const job::KubernetesTarget target = job::TargetOf<job::KubernetesTarget>(submission);
  return manifest::RenderTfJob(SpecInCluster(submission),
                               {.kubernetes_namespace = target.ns,
                                .trainer_image = TrainerImageOf(target),
                                .notebook_image = manifest::kNotebookImage,
                                .salt = base::Sha256Hex(submission.id).substr(0, 16),
                                .tls = std::move(tls),
                                .files = target.files,
                                .file_parts = std::move(file_parts)});
}

absl::StatusOr<PackedFiles> KubernetesPlatform::Pack(const job::Submission& submission,
                                                     bool notice) const {
  return PackFiles(submission, SelectFiles(submission).roles,
                   {.home = environment_.home,
                    .keys = worktree::CredentialFiles(base::ProcessVariables()),
                    .notice = notice ? environment_.notify : nullptr});
}

absl::StatusOr<std::vector<std::string>> KubernetesPlatform::PackForSending(
    job::Submission& submission) const {
  MUSTER_ASSIGN_OR_RETURN(PackedFiles packed, Pack(submission, /*notice=*/true));
  job::MutableTargetOf<job::KubernetesTarget>(submission).files = packed.sent;
  if (environment_.notify && !packed.parts.empty()) {
    environment_.notify(absl::StrCat("sends ", packed.Describe(submission.working_dir)));
    if (!packed.left_out.empty()) environment_.notify(packed.DescribeLeftOut());
  }
  return std::move(packed.parts);
}

platform::WorkDirUse KubernetesPlatform::WorkDirUseOf(const job::Submission& submission) const {
  return job::TargetOf<job::KubernetesTarget>(submission).files.digest.empty()
             ? platform::WorkDirUse::kNone
             : platform::WorkDirUse::kSent;
}

absl::StatusOr<std::string> KubernetesPlatform::DescribeFiles(
    const job::Submission& submission) const {
  MUSTER_ASSIGN_OR_RETURN(const PackedFiles packed, Pack(submission, /*notice=*/false));
  if (packed.parts.empty()) return "";
  return absl::StrCat("Sends ", packed.Describe(submission.working_dir), ".",
                      packed.left_out.empty() ? "" : " ", packed.DescribeLeftOut());
}

void KubernetesPlatform::Warn(const absl::Status& status) const {
  if (environment_.notify) environment_.notify(std::string(status.message()));
}

absl::Status KubernetesPlatform::Submit(const job::Submission& submission,
                                        const job::JobRecord& record) {
  const supervise::JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(submission));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client,
                          ClientFor(job::TargetOf<job::KubernetesTarget>(submission)));
  MUSTER_ASSIGN_OR_RETURN(job::JobTls tls, job::MakeJobTls(submission.id));
  job::Submission placed = submission;
  MUSTER_ASSIGN_OR_RETURN(std::vector<std::string> parts, PackForSending(placed));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> objects,
                          Render(placed, std::move(tls), std::move(parts)));
  std::vector<AppliedObject> applied;
  const auto job = ApplyObjects(*client, objects, &applied,
                                [this](const absl::Status& status) { Warn(status); });
  if (!job.ok()) return RollBack(*client, applied, Explain(job.status()));
  job::MutableTargetOf<job::KubernetesTarget>(placed).object.uid = k8s::UidOf(*job);
  return dir.SaveSubmission(placed);
}

absl::StatusOr<Observation> KubernetesPlatform::ReadObjects(k8s::Client& client,
                                                            const job::Submission& submission) {
  const k8s::ObjectKey job = KeyOf(submission);
  Observation observed{.now = absl::Now()};
  auto object = client.Get(manifest::kTfJobs, job, {.timeout = kReadTimeout});
  if (object.ok()) {
    if (!IsOther(submission, *object)) observed.job = *std::move(object);
  } else if (!k8s::IsNoSuchObject(object.status()) && !k8s::IsUnknownResource(object.status())) {
    return object.status();
  }
  MUSTER_ASSIGN_OR_RETURN(
      k8s::ObjectList pods,
      client.List(k8s::kPods, {.selection = PodsOf(job), .call = {.timeout = kReadTimeout}}));
  observed.pods = std::move(pods.items);
  const std::string uid = job::TargetOf<job::KubernetesTarget>(submission).object.uid;
  std::erase_if(observed.pods, [&uid](const Json& pod) { return !BelongsTo(uid, pod); });
  return observed;
}

absl::StatusOr<std::optional<job::StateChange>> KubernetesPlatform::Observe(
    const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  const job::KubernetesTarget target = job::TargetOf<job::KubernetesTarget>(submission);
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const auto observed = ReadObjects(*client, submission);
  if (absl::IsUnavailable(observed.status())) {
    MUSTER_ASSIGN_OR_RETURN(Connection * connection, ConnectionFor(target));
    connection->failed = absl::Now();
  }
  MUSTER_RETURN_IF_ERROR(observed.status());
  const FollowOptions follow = FollowOptionsOf(job, submission);
  if (observed->job && VerdictOf(*observed->job)) {
    // The failure report contains the last lines, and the output must outlive the pods.
    Copy(*client, follow, observed->pods,
         /*ended=*/std::none_of(observed->pods.begin(), observed->pods.end(), IsAtWork));
  }
  return Compare({.job = job,
                  .tasks = tasks,
                  .submission = submission,
                  .last_lines =
                      [&follow](const cluster::TaskId& task) {
                        return supervise::LastLines(follow.logs, task, kLastLines);
                      }},
                 *observed);
}

// Copies the output as far as possible. Failures are warnings: existing output remains readable.
void KubernetesPlatform::Copy(k8s::Client& client, const FollowOptions& options,
                              const std::vector<Json>& pods, bool ended) const {
  const auto copied = CopyOutput(client, options, pods);
  if (!copied.ok()) {
    Warn(base::Annotate(copied.status(), "not all of the output could be fetched"));
  } else if (*copied && ended) {
    base::ReplaceFile(CompleteMarker(options), "").IgnoreError();  // else the copy is repeated
  }
}

absl::Status KubernetesPlatform::Stop(const job::JobRecord& job, bool immediately) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client,
                          ClientFor(job::TargetOf<job::KubernetesTarget>(submission)));
  const k8s::ObjectKey key = KeyOf(submission);
  MUSTER_ASSIGN_OR_RETURN(
      const k8s::ObjectList pods,
      client->List(k8s::kPods, {.selection = PodsOf(key), .call = {.timeout = kReadTimeout}}));
  // Output is deleted together with the pods, so it is copied first.
  Copy(*client, FollowOptionsOf(job, submission), pods.items, /*ended=*/false);
  // Foreground deletion: the TFJob exists until the last of its pods is gone.
  const absl::Status asked =
      client->Delete(manifest::kTfJobs, key,
                     {.propagation = k8s::DeleteOptions::Propagation::kForeground,
                      .uid = job::TargetOf<job::KubernetesTarget>(submission).object.uid,
                      .call = {.timeout = kReadTimeout}});
  if (!asked.ok() && !k8s::IsNoSuchObject(asked)) return Explain(asked);
  if (!immediately) return absl::OkStatus();
  for (const Json& pod : pods.items) {
    const absl::Status ended =
        client->Delete(k8s::kPods, k8s::KeyOf(pod), {.uid = k8s::UidOf(pod), .grace_seconds = 0});
    if (!ended.ok() && !k8s::IsNoSuchObject(ended)) return ended;
  }
  return absl::OkStatus();
}

std::vector<platform::Machine> KubernetesPlatform::Machines(
    const job::JobRecord& job, const std::vector<job::TaskRecord>& tasks) {
  std::vector<platform::Machine> machines = platform::MachinesOf(tasks);
  const auto submission = supervise::JobDir(job.directory).LoadSubmission();
  if (!submission.ok()) return machines;
  const auto client = ClientFor(job::TargetOf<job::KubernetesTarget>(*submission));
  if (!client.ok()) return machines;
  for (platform::Machine& machine : machines) {
    const auto node = (*client)->Get(k8s::kNodes, {"", machine.name});
    if (node.ok()) {
      Describe(*node, machine);
    } else if (!k8s::IsNoSuchObject(node.status())) {
      break;  // no answer, or no permission: the same for every node
    }
  }
  return machines;
}

absl::StatusOr<std::shared_ptr<Follower>> KubernetesPlatform::Follow(const job::JobRecord& job) {
  if (auto known = followers_[job.id].lock()) return known;
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client,
                          ClientFor(job::TargetOf<job::KubernetesTarget>(submission)));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Follower> started,
                          Follower::Start(*client, FollowOptionsOf(job, submission)));
  std::shared_ptr<Follower> follower = std::move(started);
  followers_[job.id] = follower;
  return follower;
}

absl::StatusOr<std::unique_ptr<platform::JobWatch>> KubernetesPlatform::Watch(
    const job::JobRecord& job) {
  if (job::IsFinal(job.state)) return absl::UnavailableError(absl::StrCat(job.id, " has ended"));
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Follower> follower, Follow(job));
  return std::make_unique<FollowerWatch>(std::move(follower));
}

absl::StatusOr<std::unique_ptr<supervise::LogStream>> KubernetesPlatform::Logs(
    const job::JobRecord& job, const std::vector<cluster::TaskId>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(const job::Submission submission,
                          supervise::JobDir(job.directory).LoadSubmission());
  const FollowOptions options = FollowOptionsOf(job, submission);
  std::error_code error;
  if (!job::IsFinal(job.state) || !std::filesystem::exists(CompleteMarker(options), error)) {
    const auto client = ClientFor(job::TargetOf<job::KubernetesTarget>(submission));
    auto observed = client.ok() ? ReadObjects(**client, submission) : client.status();
    if (observed.ok()) {
      Copy(**client, options, observed->pods, /*ended=*/job::IsFinal(job.state));
    } else {
      Warn(base::Annotate(observed.status(), "the latest output could not be fetched"));
    }
  }
  return std::make_unique<supervise::MergedLogReader>(options.logs, tasks);
}

absl::StatusOr<platform::NotebookAccess> KubernetesPlatform::FindNotebook(
    const job::Submission& submission) {
  const bool applied_by_hand = submission.id.empty();
  const job::JobSpec spec = applied_by_hand ? submission.spec : SpecInCluster(submission);
  if (spec.notebook.is_null()) {
    return absl::FailedPreconditionError(
        "the job file has no 'notebook' section; add `notebook: {password: …}` to it");
  }
  job::KubernetesTarget target = job::TargetOf<job::KubernetesTarget>(submission);
  // `muster render` writes the job's namespace as it is, also "default".
  if (applied_by_hand && target.ns.empty()) {
    target.ns = spec.notebook.value("namespace", spec.kubernetes_namespace);
  }
  MUSTER_ASSIGN_OR_RETURN(target, Resolve(std::move(target), spec.kubernetes_namespace));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  return kubernetes::FindNotebook(*client, spec, target);
}

}  // namespace muster::kubernetes
