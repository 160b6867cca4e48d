#include "platform/kubernetes/platform.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "codec/yaml_writer.h"
#include "job/parse.h"
#include "k8s/error.h"
#include "manifest/manifests.h"
#include "manifest/names.h"
#include "platform/kubernetes/limits.h"
#include "supervise/job_dir.h"

namespace muster::kubernetes {
namespace {

constexpr int kLastLines = 10;
constexpr absl::Duration kLookTimeout = absl::Seconds(5);
constexpr absl::Duration kWriteTimeout = absl::Seconds(15);
// After a failure, calls fail fast for this long, so that a listing of many jobs waits only once.
constexpr absl::Duration kUnreachableFor = absl::Seconds(10);

class FollowerWatch final : public JobWatch {
 public:
  explicit FollowerWatch(std::shared_ptr<Follower> follower) : follower_(std::move(follower)) {}
  int fd() const override { return follower_->fd(); }
  bool Drain() override { return follower_->Drain(); }

 private:
  std::shared_ptr<Follower> follower_;
};

FollowOptions FollowOptionsOf(const JobRecord& job, const Submission& submission) {
  const Policies& policies = submission.spec.policies;
  return {.job = KeyOf(submission),
          .uid = TargetOf<KubernetesTarget>(submission).object.uid,
          .logs = JobDir(job.directory).logs(),
          .log = {.rotate_bytes = policies.log_rotate_bytes, .keep = policies.log_keep},
          .finish_grace = FinishGrace(submission.spec)};
}

// Replaces the error for an unknown resource: without the CRD there is no operator to run the job.
absl::Status Explain(const absl::Status& status) {
  if (!k8s::IsUnknownResource(status)) return status;
  return absl::FailedPreconditionError(
      "the cluster does not know TFJobs: `muster operator install` installs the operator that runs "
      "them, and `muster render` makes manifests that need none");
}

absl::StatusOr<const k8s::ResourceKind*> KindOf(const Json& object) {
  if (k8s::TextAt(object, "/kind") == manifest::kTfJobs.kind) return &manifest::kTfJobs;
  const k8s::ResourceKind* kind =
      k8s::FindKind(k8s::TextAt(object, "/apiVersion"), k8s::TextAt(object, "/kind"));
  if (kind == nullptr) {
    return absl::InternalError(absl::StrCat("unknown kind ", k8s::TextAt(object, "/kind")));
  }
  return kind;
}

Json OwnerReference(const Json& job) {
  return {{"apiVersion", manifest::kTfJobs.ApiVersion()},
          {"kind", std::string(manifest::kTfJobs.kind)},
          {"name", k8s::NameOf(job)},
          {"uid", k8s::UidOf(job)}};
}

// Returns true if `job` has the name of the submission's TFJob but is another object.
bool IsOther(const Submission& submission, const Json& job) {
  const std::string uid = TargetOf<KubernetesTarget>(submission).object.uid;
  return !uid.empty() && k8s::UidOf(job) != uid;
}

// Returns true if the pod belongs to the TFJob with this uid, or has no owner yet.
bool BelongsTo(const std::string& uid, const Json& pod) {
  const std::string owner = k8s::ControllerOf(pod);
  return uid.empty() || owner.empty() || owner == uid;
}

// Returns the path of the file that marks the output as complete.
std::string WholeMark(const FollowOptions& options) { return JoinPath(options.logs, "whole"); }

// Returns the submission of a running job after its update to `next`.
Submission Continued(const Submission& current, Submission next) {
  next.id = current.id;
  const std::string image = TargetOf<KubernetesTarget>(next).trainer_image;
  next.target = current.target;
  if (!image.empty()) MutableTargetOf<KubernetesTarget>(next).trainer_image = image;
  next.resumed_from = current.resumed_from;
  next.resume_step = current.resume_step;
  return next;
}

// Returns the pod templates by role. REQUIRES: the TFJob is the last object.
std::map<std::string, Json> TemplatesOf(const std::vector<manifest::Object>& objects) {
  std::map<std::string, Json> templates;
  for (const auto& [title, replica] : objects.back()["spec"]["tfReplicaSpecs"].items()) {
    templates[absl::AsciiStrToLower(title)] = replica["template"];
  }
  return templates;
}

}  // namespace

absl::StatusOr<KubernetesPlatform::Connection*> KubernetesPlatform::ConnectionFor(
    const KubernetesTarget& target) {
  Connection& connection = connections_[absl::StrCat(target.kubeconfig, "\n", target.context)];
  if (connection.client == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(connection.client, Connect(target, {.on_warning = options_.warn}));
  }
  return &connection;
}

absl::StatusOr<k8s::Client*> KubernetesPlatform::ClientFor(const KubernetesTarget& target) {
  MUSTER_ASSIGN_OR_RETURN(Connection * connection, ConnectionFor(target));
  // The stored failure would name the request, and thus the job, of an earlier caller.
  if (absl::Now() - connection->failed < kUnreachableFor) {
    return absl::UnavailableError(
        absl::StrCat(connection->client->transport().config().server,
                     " did not answer a moment ago; it is asked again in a few seconds"));
  }
  return connection->client.get();
}

absl::StatusOr<KubernetesTarget> KubernetesPlatform::Resolve(KubernetesTarget target,
                                                             const std::string& ns) {
  if (target.kubeconfig.empty()) target.kubeconfig = k8s::KubeconfigFiles(ProcessVariables());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const k8s::ClusterConfig& config = client->transport().config();
  target.context = config.context;
  // A manifest without a namespace refers to the one of the current context.
  const bool named = !ns.empty() && ns != "default";
  if (target.ns.empty()) target.ns = named ? ns : config.ns;
  return target;
}

std::vector<Limit> KubernetesPlatform::Unsupported(const Submission& submission) const {
  std::vector<Limit> limits = LimitsOf(submission.spec);
  const auto rendered = Render(submission);
  if (!rendered.ok()) {
    limits.push_back({.what = std::string(rendered.status().message()), .fatal = true});
  }
  return limits;
}

absl::Status KubernetesPlatform::Prepare(Submission& submission) {
  KubernetesTarget own = TargetOf<KubernetesTarget>(submission);
  if (!own.object.name.empty() && submission.spec.format == JobFormat::kNative) {
    return absl::FailedPreconditionError(absl::StrCat(
        own.object.name, " was started elsewhere, and its job file is there: run that again"));
  }
  own.object.name.clear();  // every run of ours has its own TFJob
  own.object.uid.clear();
  MUSTER_ASSIGN_OR_RETURN(const KubernetesTarget target,
                          Resolve(std::move(own), submission.spec.kubernetes_namespace));
  submission.target = target;
  return Render(submission).status();
}

absl::StatusOr<std::vector<JobRecord>> KubernetesPlatform::List(const Target& where) {
  MUSTER_ASSIGN_OR_RETURN(const KubernetesTarget target,
                          Resolve(std::get<KubernetesTarget>(where), ""));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const auto listed = client->List(
      manifest::kTfJobs, {.selection = {.ns = target.ns}, .call = {.timeout = kLookTimeout}});
  if (!listed.ok()) return Explain(listed.status());
  std::vector<JobRecord> jobs;
  jobs.reserve(listed->items.size());
  for (const Json& item : listed->items) jobs.push_back(RecordOf(item, absl::Now()));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobRecord& a, const JobRecord& b) { return a.created > b.created; });
  return jobs;
}

absl::StatusOr<Submission> KubernetesPlatform::Import(const std::string& id, const Target& where) {
  MUSTER_ASSIGN_OR_RETURN(KubernetesTarget target, Resolve(std::get<KubernetesTarget>(where), ""));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const auto job = client->Get(manifest::kTfJobs, {target.ns, id}, {.timeout = kLookTimeout});
  if (!job.ok()) return Explain(job.status());
  target.object.name = id;
  target.object.uid = k8s::UidOf(*job);
  Submission submission{.source_name = id, .working_dir = "/", .target = target};
  submission.source = codec::ToYaml(manifest::Object({{"spec", (*job)["spec"]}}));
  MUSTER_ASSIGN_OR_RETURN(submission.spec, ParseTfJobObject(*job));
  submission.created = RecordOf(*job, absl::Now()).created;
  // A run of ours is unique by its name. The name of another job may be reused, so its uid is
  // added.
  const bool ours = k8s::LabelOf(*job, manifest::kJobLabel) == id;
  submission.id = ours ? id : absl::StrCat(id, "-", k8s::UidOf(*job).substr(0, 5));
  return submission;
}

std::string KubernetesPlatform::Describe(const Submission& submission) const {
  const KubernetesTarget target = TargetOf<KubernetesTarget>(submission);
  return absl::StrCat(
      "in namespace '", target.ns, "' of ",
      target.context.empty() ? "this cluster" : absl::StrCat("context '", target.context, "'"));
}

absl::StatusOr<ClusterSpec> KubernetesPlatform::Addresses(const Submission& submission) const {
  return AddressesOf(submission);
}

absl::StatusOr<TaskLaunch> KubernetesPlatform::LaunchOf(const Submission& submission,
                                                        const ClusterSpec& cluster,
                                                        const TaskId& task) const {
  return manifest::PodLaunch(SpecInCluster(submission), cluster, task, {.job_id = submission.id});
}

absl::StatusOr<std::vector<manifest::Object>> KubernetesPlatform::Render(
    const Submission& submission, std::optional<JobTls> tls) const {
  const KubernetesTarget target = TargetOf<KubernetesTarget>(submission);
  return manifest::RenderTfJob(
      SpecInCluster(submission),
      {.kubernetes_namespace = target.ns,
       .trainer_image =
           target.trainer_image.empty() ? options_.trainer_image : target.trainer_image,
       .notebook_image = options_.notebook_image,
       .salt = Sha256Hex(submission.id).substr(0, 16),
       .tls = std::move(tls)});
}

// Applies the objects in order, then makes the last one, the TFJob, the owner of the others. A
// TFJob that exists therefore has all that it needs. Returns the TFJob.
absl::StatusOr<Json> KubernetesPlatform::ApplyAll(k8s::Client& client,
                                                  const std::vector<manifest::Object>& objects,
                                                  std::vector<Made>* made) {
  Json job;
  for (const manifest::Object& object : objects) {
    const Json json = object;
    MUSTER_ASSIGN_OR_RETURN(const k8s::ResourceKind* kind, KindOf(json));
    // Recorded before the request: without an answer the object may exist.
    made->push_back({kind, k8s::KeyOf(json)});
    MUSTER_ASSIGN_OR_RETURN(job,
                            client.Apply(*kind, json, /*force=*/true, {.timeout = kWriteTimeout}));
  }
  const Json owned = {{"metadata", {{"ownerReferences", Json::array({OwnerReference(job)})}}}};
  for (size_t i = 0; i + 1 < made->size(); ++i) {
    // An object without an owner is merely left behind when the job is deleted.
    const auto patched =
        client.Patch(*made->at(i).kind, made->at(i).key, owned, {.strategic_patch = true});
    if (!patched.ok()) Warn(patched.status());
  }
  return job;
}

void KubernetesPlatform::Warn(const absl::Status& status) const {
  if (options_.warn) options_.warn(std::string(status.message()));
}

absl::Status KubernetesPlatform::Submit(const Submission& submission, const JobRecord& record) {
  const JobDir dir(record.directory);
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(submission));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(TargetOf<KubernetesTarget>(submission)));
  MUSTER_ASSIGN_OR_RETURN(JobTls tls, MakeJobTls(submission.id));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> objects,
                          Render(submission, std::move(tls)));
  std::vector<Made> made;
  const auto job = ApplyAll(*client, objects, &made);
  if (job.ok()) {
    Submission placed = submission;
    MutableTargetOf<KubernetesTarget>(placed).object.uid = k8s::UidOf(*job);
    return dir.SaveSubmission(placed);
  }
  // Roll back, and name the objects that could not be deleted.
  std::vector<std::string> left;
  for (const Made& one : made) {
    const absl::Status removed = client->Delete(*one.kind, one.key);
    if (!removed.ok() && !k8s::IsNoSuchObject(removed) && !k8s::IsUnknownResource(removed)) {
      left.push_back(absl::StrCat(one.kind->plural, "/", one.key.name));
    }
  }
  if (left.empty()) return Explain(job.status());
  return Annotate(Explain(job.status()),
                  absl::StrCat("there may be left in the cluster, to be deleted by hand: ",
                               absl::StrJoin(left, ", ")));
}

// Observe() determines the state.
Liveness KubernetesPlatform::Check(const JobRecord&) { return Liveness::kUnknown; }

absl::StatusOr<Sight> KubernetesPlatform::Look(k8s::Client& client, const Submission& submission) {
  const k8s::ObjectKey job = KeyOf(submission);
  Sight sight{.now = absl::Now()};
  auto object = client.Get(manifest::kTfJobs, job, {.timeout = kLookTimeout});
  if (object.ok()) {
    if (!IsOther(submission, *object)) sight.job = *std::move(object);
  } else if (!k8s::IsNoSuchObject(object.status()) && !k8s::IsUnknownResource(object.status())) {
    return object.status();
  }
  MUSTER_ASSIGN_OR_RETURN(
      k8s::ObjectList pods,
      client.List(k8s::kPods, {.selection = PodsOf(job), .call = {.timeout = kLookTimeout}}));
  sight.pods = std::move(pods.items);
  const std::string uid = TargetOf<KubernetesTarget>(submission).object.uid;
  std::erase_if(sight.pods, [&uid](const Json& pod) { return !BelongsTo(uid, pod); });
  return sight;
}

absl::StatusOr<std::optional<StateChange>> KubernetesPlatform::Observe(
    const JobRecord& job, const std::vector<TaskRecord>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  const KubernetesTarget target = TargetOf<KubernetesTarget>(submission);
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(target));
  const auto sight = Look(*client, submission);
  if (absl::IsUnavailable(sight.status())) {
    MUSTER_ASSIGN_OR_RETURN(Connection * connection, ConnectionFor(target));
    connection->failed = absl::Now();
  }
  MUSTER_RETURN_IF_ERROR(sight.status());
  const FollowOptions follow = FollowOptionsOf(job, submission);
  if (sight->job && VerdictOf(*sight->job)) {
    // The failure report contains the last lines, and the output must outlive the pods.
    Copy(*client, follow, sight->pods,
         /*ended=*/std::none_of(sight->pods.begin(), sight->pods.end(), IsAtWork));
  }
  return Compare(
      {.job = job,
       .tasks = tasks,
       .submission = submission,
       .last_lines =
           [&follow](const TaskId& task) { return LastLines(follow.logs, task, kLastLines); }},
      *sight);
}

// Copies the output as far as possible. Failures are warnings: existing output remains readable.
void KubernetesPlatform::Copy(k8s::Client& client, const FollowOptions& options,
                              const std::vector<Json>& pods, bool ended) const {
  const auto copied = CopyOutput(client, options, pods);
  if (!copied.ok()) {
    Warn(Annotate(copied.status(), "not all of the output could be fetched"));
  } else if (*copied && ended) {
    ReplaceFile(WholeMark(options), "").IgnoreError();  // else the copy is repeated
  }
}

absl::Status KubernetesPlatform::Stop(const JobRecord& job, bool immediately) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(TargetOf<KubernetesTarget>(submission)));
  const k8s::ObjectKey key = KeyOf(submission);
  MUSTER_ASSIGN_OR_RETURN(
      const k8s::ObjectList pods,
      client->List(k8s::kPods, {.selection = PodsOf(key), .call = {.timeout = kLookTimeout}}));
  // Output is deleted together with the pods, so it is copied first.
  Copy(*client, FollowOptionsOf(job, submission), pods.items, /*ended=*/false);
  // Foreground deletion: the TFJob exists until the last of its pods is gone.
  const absl::Status asked =
      client->Delete(manifest::kTfJobs, key,
                     {.propagation = k8s::DeleteOptions::Propagation::kForeground,
                      .uid = TargetOf<KubernetesTarget>(submission).object.uid,
                      .call = {.timeout = kLookTimeout}});
  if (!asked.ok() && !k8s::IsNoSuchObject(asked)) return Explain(asked);
  if (!immediately) return absl::OkStatus();
  for (const Json& pod : pods.items) {
    const absl::Status ended =
        client->Delete(k8s::kPods, k8s::KeyOf(pod), {.uid = k8s::UidOf(pod), .grace_seconds = 0});
    if (!ended.ok() && !k8s::IsNoSuchObject(ended)) return ended;
  }
  return absl::OkStatus();
}

absl::StatusOr<UpdatePlan> KubernetesPlatform::PlanUpdate(const JobRecord& job,
                                                          const std::vector<TaskRecord>&,
                                                          const Submission& next) {
  MUSTER_ASSIGN_OR_RETURN(const Submission current, JobDir(job.directory).LoadSubmission());
  const Submission changed = Continued(current, next);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> before, Render(current));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> after, Render(changed));
  const auto old_templates = TemplatesOf(before), new_templates = TemplatesOf(after);
  const std::vector<TaskId> old_tasks = current.spec.Tasks(), new_tasks = changed.spec.Tasks();
  const auto has = [](const std::vector<TaskId>& tasks, const TaskId& task) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  UpdatePlan plan;
  for (const TaskId& task : new_tasks) {
    if (!has(old_tasks, task)) {
      plan.added.push_back(task);
    } else if (old_templates.at(task.role) != new_templates.at(task.role)) {
      plan.restarted.push_back(task);
    } else {
      plan.kept.push_back(task);
    }
  }
  for (const TaskId& task : old_tasks) {
    if (!has(new_tasks, task)) plan.removed.push_back(task);
  }
  plan.policies_changed = plan.empty() && current.spec != next.spec;
  return plan;
}

absl::Status KubernetesPlatform::Update(const JobRecord& job, const Submission& next) {
  const JobDir dir(job.directory);
  MUSTER_ASSIGN_OR_RETURN(const Submission current, dir.LoadSubmission());
  const Submission changed = Continued(current, next);
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(TargetOf<KubernetesTarget>(changed)));
  const JobSpec spec = SpecInCluster(changed);
  // The certificates are kept across updates: a new set is made only if the secret is missing.
  std::optional<JobTls> tls;
  if (manifest::HasTls(spec)) {
    const auto secret = client->Get(k8s::kSecrets, {KeyOf(changed).ns, manifest::TlsName(spec)});
    if (k8s::IsNoSuchObject(secret.status())) {
      MUSTER_ASSIGN_OR_RETURN(tls, MakeJobTls(changed.id));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> objects,
                          Render(changed, std::move(tls)));
  std::vector<Made> made;
  MUSTER_RETURN_IF_ERROR(ApplyAll(*client, objects, &made).status());
  MUSTER_RETURN_IF_ERROR(dir.SaveSubmission(changed));
  // Delete the objects that the updated job no longer has.
  MUSTER_ASSIGN_OR_RETURN(const std::vector<manifest::Object> before, Render(current));
  for (const manifest::Object& object : before) {
    const Json json = object;
    MUSTER_ASSIGN_OR_RETURN(const k8s::ResourceKind* kind, KindOf(json));
    const bool stays = std::any_of(made.begin(), made.end(), [&](const Made& one) {
      return one.kind == kind && one.key == k8s::KeyOf(json);
    });
    if (stays) continue;
    const absl::Status removed = client->Delete(*kind, k8s::KeyOf(json));
    if (!removed.ok() && !k8s::IsNoSuchObject(removed)) Warn(removed);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Follower>> KubernetesPlatform::Follow(const JobRecord& job) {
  if (auto known = followers_[job.id].lock()) return known;
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(TargetOf<KubernetesTarget>(submission)));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Follower> started,
                          Follower::Start(*client, FollowOptionsOf(job, submission)));
  std::shared_ptr<Follower> follower = std::move(started);
  followers_[job.id] = follower;
  return follower;
}

absl::StatusOr<std::unique_ptr<JobWatch>> KubernetesPlatform::Watch(const JobRecord& job) {
  if (IsFinal(job.state)) return absl::UnavailableError(absl::StrCat(job.id, " has ended"));
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<Follower> follower, Follow(job));
  return std::make_unique<FollowerWatch>(std::move(follower));
}

absl::StatusOr<std::unique_ptr<LogStream>> KubernetesPlatform::Logs(
    const JobRecord& job, const std::vector<TaskId>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  const FollowOptions options = FollowOptionsOf(job, submission);
  std::error_code error;
  if (!IsFinal(job.state) || !std::filesystem::exists(WholeMark(options), error)) {
    const auto client = ClientFor(TargetOf<KubernetesTarget>(submission));
    auto sight = client.ok() ? Look(**client, submission) : client.status();
    if (sight.ok()) {
      Copy(**client, options, sight->pods, /*ended=*/IsFinal(job.state));
    } else {
      Warn(Annotate(sight.status(), "the latest output could not be fetched"));
    }
  }
  return std::make_unique<MergedLogReader>(options.logs, tasks);
}

}  // namespace muster::kubernetes
