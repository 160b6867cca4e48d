#include "launch/kubernetes/platform.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "base/variables.h"
#include "codec/yaml_writer.h"
#include "job/parse.h"
#include "k8s/error.h"
#include "launch/job_dir.h"
#include "launch/kubernetes/manifests.h"
#include "launch/kubernetes/names.h"

namespace muster::kubernetes {
namespace {

constexpr int kLastLines = 10;
constexpr absl::Duration kLookPatience = absl::Seconds(5);
// Who lists a hundred jobs of a cluster that does not answer waits once.
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
          .logs = JobDir(job.directory).logs(),
          .log = {.rotate_bytes = policies.log_rotate_bytes, .keep = policies.log_keep}};
}

// When there is no operator, there is nobody to run the job.
absl::Status Explain(const absl::Status& status) {
  if (!k8s::IsUnknownResource(status)) return status;
  return absl::FailedPreconditionError(
      "the cluster does not know TFJobs: `muster operator install` installs the operator that runs "
      "them, and `muster render` makes manifests that need none");
}

absl::StatusOr<const k8s::ResourceKind*> KindOf(const Json& object) {
  if (k8s::TextAt(object, "/kind") == kTfJobs.kind) return &kTfJobs;
  const k8s::ResourceKind* kind =
      k8s::FindKind(k8s::TextAt(object, "/apiVersion"), k8s::TextAt(object, "/kind"));
  if (kind == nullptr) {
    return absl::InternalError(absl::StrCat("unknown kind ", k8s::TextAt(object, "/kind")));
  }
  return kind;
}

Json OwnerReference(const Json& job) {
  return {{"apiVersion", kTfJobs.ApiVersion()},
          {"kind", std::string(kTfJobs.kind)},
          {"name", k8s::NameOf(job)},
          {"uid", k8s::UidOf(job)}};
}

// A running job as it shall be from now on.
Submission Continued(const Submission& current, Submission next) {
  next.id = current.id;
  next.place = current.place;
  next.resumed_from = current.resumed_from;
  next.resume_step = current.resume_step;
  return next;
}

// By role.
std::map<std::string, Json> TemplatesOf(const std::vector<Object>& objects) {
  std::map<std::string, Json> templates;
  for (const auto& [title, replica] : objects.back()["spec"]["tfReplicaSpecs"].items()) {
    templates[absl::AsciiStrToLower(title)] = replica["template"];
  }
  return templates;
}

}  // namespace

absl::StatusOr<KubernetesPlatform::Connection*> KubernetesPlatform::ConnectionFor(
    const Place& place) {
  Connection& connection = connections_[absl::StrCat(place.kubeconfig, "\n", place.context)];
  if (connection.client == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(connection.client, Connect(place, {.on_warning = options_.warn}));
  }
  return &connection;
}

absl::StatusOr<k8s::Client*> KubernetesPlatform::ClientFor(const Place& place) {
  MUSTER_ASSIGN_OR_RETURN(Connection * connection, ConnectionFor(place));
  if (absl::Now() - connection->failed < kUnreachableFor) return connection->failure;
  return connection->client.get();
}

absl::StatusOr<Place> KubernetesPlatform::Resolve(Place place, const std::string& name_space) {
  if (place.kubeconfig.empty()) place.kubeconfig = ProcessVariables()("KUBECONFIG");
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(place));
  const k8s::ClusterConfig& config = client->transport().config();
  place.context = config.context;
  // A manifest that names no namespace means the one that its reader is in.
  const bool named = !name_space.empty() && name_space != "default";
  if (place.name_space.empty()) place.name_space = named ? name_space : config.name_space;
  return place;
}

absl::Status KubernetesPlatform::Prepare(Submission& submission) {
  Place own = Place::Of(submission);
  own.job.clear();  // a run of ours has a TFJob of its own
  MUSTER_ASSIGN_OR_RETURN(const Place place,
                          Resolve(std::move(own), submission.spec.kubernetes_namespace));
  submission.place = place.ToJson();
  return Render(submission).status();
}

absl::StatusOr<std::vector<JobRecord>> KubernetesPlatform::List(const nlohmann::json& where) {
  MUSTER_ASSIGN_OR_RETURN(const Place place, Resolve(Place::Of({.place = where}), ""));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(place));
  const auto listed = client->List(kTfJobs, {.selection = {.name_space = place.name_space},
                                             .call = {.patience = kLookPatience}});
  if (!listed.ok()) return Explain(listed.status());
  std::vector<JobRecord> jobs;
  jobs.reserve(listed->items.size());
  for (const Json& item : listed->items) jobs.push_back(RecordOf(item, absl::Now()));
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const JobRecord& a, const JobRecord& b) { return a.created > b.created; });
  return jobs;
}

absl::StatusOr<Submission> KubernetesPlatform::Import(const std::string& id,
                                                      const nlohmann::json& where) {
  MUSTER_ASSIGN_OR_RETURN(Place place, Resolve(Place::Of({.place = where}), ""));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(place));
  const auto job = client->Get(kTfJobs, {place.name_space, id}, {.patience = kLookPatience});
  if (!job.ok()) return Explain(job.status());
  place.job = id;
  Submission submission{.source_name = id, .working_dir = "/", .place = place.ToJson()};
  submission.source = codec::ToYaml(Object({{"spec", (*job)["spec"]}}));
  MUSTER_ASSIGN_OR_RETURN(submission.spec,
                          ParseJob(job->dump(), {.file_name = id, .working_dir = "/"}));
  submission.created = RecordOf(*job, absl::Now()).created;
  // A run of ours is known by its name; of others' there may be one of the name again and again.
  const bool ours = k8s::LabelOf(*job, kJobLabel) == id;
  submission.id = ours ? id : absl::StrCat(id, "-", k8s::UidOf(*job).substr(0, 5));
  return submission;
}

std::string KubernetesPlatform::Describe(const Submission& submission) const {
  const Place place = Place::Of(submission);
  return absl::StrCat(
      "in namespace '", place.name_space, "' of ",
      place.context.empty() ? "this cluster" : absl::StrCat("context '", place.context, "'"));
}

absl::StatusOr<ClusterSpec> KubernetesPlatform::Addresses(const Submission& submission) const {
  return AddressesOf(submission);
}

absl::StatusOr<TaskLaunch> KubernetesPlatform::LaunchOf(const Submission& submission,
                                                        const ClusterSpec& cluster,
                                                        const TaskId& task) const {
  return PodLaunch(SpecInCluster(submission), cluster, task, {.job_id = submission.id});
}

absl::StatusOr<std::vector<Object>> KubernetesPlatform::Render(const Submission& submission) const {
  const Place place = Place::Of(submission);
  return RenderTfJob(
      SpecInCluster(submission),
      {.kubernetes_namespace = place.name_space,
       .trainer_image = place.trainer_image.empty() ? options_.trainer_image : place.trainer_image,
       .notebook_image = options_.notebook_image,
       .salt = Sha256Hex(submission.id).substr(0, 16)});
}

// The TFJob comes last, and only then owns the others: a job that exists has all that it needs.
absl::Status KubernetesPlatform::Submit(const Submission& submission, const JobRecord& record) {
  MUSTER_RETURN_IF_ERROR(JobDir(record.directory).SaveSubmission(submission));
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(Place::Of(submission)));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Object> objects, Render(submission));
  std::vector<std::pair<const k8s::ResourceKind*, k8s::ObjectKey>> made;
  absl::Status status;
  Json job;
  for (const Object& object : objects) {
    const Json json = object;
    MUSTER_ASSIGN_OR_RETURN(const k8s::ResourceKind* kind, KindOf(json));
    auto created = client->Apply(*kind, json, /*force=*/false);
    status = created.status();
    if (!status.ok()) break;
    made.emplace_back(kind, k8s::KeyOf(json));
    job = *std::move(created);
  }
  if (!status.ok()) {
    for (const auto& [kind, key] : made) client->Delete(*kind, key).IgnoreError();
    return Explain(status);
  }
  const Json owned = {{"metadata", {{"ownerReferences", Json::array({OwnerReference(job)})}}}};
  made.pop_back();
  for (const auto& [kind, key] : made) {
    // Without an owner it merely stays behind when the job is deleted.
    const auto patched = client->Patch(*kind, key, owned);
    if (!patched.ok() && options_.warn) options_.warn(std::string(patched.status().message()));
  }
  return absl::OkStatus();
}

// Observe() says all there is to say.
Liveness KubernetesPlatform::Check(const JobRecord&) { return Liveness::kUnknown; }

absl::StatusOr<Sight> KubernetesPlatform::Look(k8s::Client& client, const k8s::ObjectKey& job) {
  Sight sight{.now = absl::Now()};
  auto object = client.Get(kTfJobs, job, {.patience = kLookPatience});
  if (object.ok()) {
    sight.job = *std::move(object);
  } else if (!k8s::IsNoSuchObject(object.status()) && !k8s::IsUnknownResource(object.status())) {
    return object.status();
  }
  MUSTER_ASSIGN_OR_RETURN(
      k8s::ObjectList pods,
      client.List(k8s::kPods, {.selection = PodsOf(job), .call = {.patience = kLookPatience}}));
  sight.pods = std::move(pods.items);
  return sight;
}

absl::StatusOr<std::optional<StateChange>> KubernetesPlatform::Observe(
    const JobRecord& job, const std::vector<TaskRecord>& tasks) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  const Place place = Place::Of(submission);
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(place));
  const auto sight = Look(*client, KeyOf(submission));
  if (absl::IsUnavailable(sight.status())) {
    MUSTER_ASSIGN_OR_RETURN(Connection * connection, ConnectionFor(place));
    connection->failure = sight.status();
    connection->failed = absl::Now();
  }
  MUSTER_RETURN_IF_ERROR(sight.status());
  const FollowOptions follow = FollowOptionsOf(job, submission);
  if (sight->job && VerdictOf(*sight->job)) {
    // The last lines belong to the report, and all of them outlive the pods.
    CopyOutput(*client, follow, sight->pods).IgnoreError();
  }
  return Compare(
      {.job = job,
       .tasks = tasks,
       .submission = submission,
       .last_lines =
           [&follow](const TaskId& task) { return LastLines(follow.logs, task, kLastLines); }},
      *sight);
}

absl::Status KubernetesPlatform::Stop(const JobRecord& job, bool at_once) {
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(Place::Of(submission)));
  const k8s::ObjectKey key = KeyOf(submission);
  MUSTER_ASSIGN_OR_RETURN(
      const k8s::ObjectList pods,
      client->List(k8s::kPods, {.selection = PodsOf(key), .call = {.patience = kLookPatience}}));
  // What the tasks have said goes with their pods.
  MUSTER_RETURN_IF_ERROR(CopyOutput(*client, FollowOptionsOf(job, submission), pods.items));
  // In the foreground: it is there until the last of its pods is gone.
  const absl::Status asked =
      client->Delete(kTfJobs, key,
                     {.propagation = k8s::DeleteOptions::Propagation::kForeground,
                      .call = {.patience = kLookPatience}});
  if (!asked.ok() && !k8s::IsNoSuchObject(asked)) return Explain(asked);
  if (!at_once) return absl::OkStatus();
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
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Object> before, Render(current));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Object> after, Render(changed));
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
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(Place::Of(changed)));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Object> objects, Render(changed));
  for (const Object& object : objects) {
    const Json json = object;
    MUSTER_ASSIGN_OR_RETURN(const k8s::ResourceKind* kind, KindOf(json));
    MUSTER_RETURN_IF_ERROR(client->Apply(*kind, json, /*force=*/true).status());
  }
  return dir.SaveSubmission(changed);
}

absl::StatusOr<std::shared_ptr<Follower>> KubernetesPlatform::Follow(const JobRecord& job) {
  if (auto known = followers_[job.id].lock()) return known;
  MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
  MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(Place::Of(submission)));
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
  const std::string logs = JobDir(job.directory).logs();
  if (!IsFinal(job.state)) {
    MUSTER_ASSIGN_OR_RETURN(const Submission submission, JobDir(job.directory).LoadSubmission());
    MUSTER_ASSIGN_OR_RETURN(k8s::Client * client, ClientFor(Place::Of(submission)));
    const FollowOptions options = FollowOptionsOf(job, submission);
    auto pods = client->List(
        k8s::kPods, {.selection = PodsOf(options.job), .call = {.patience = kLookPatience}});
    absl::Status copied = pods.status();
    if (pods.ok()) copied = CopyOutput(*client, options, pods->items);
    // What is here already is worth reading all the same.
    if (!copied.ok() && options_.warn) {
      options_.warn(absl::StrCat("the latest output could not be fetched: ", copied.message()));
    }
  }
  return std::make_unique<MergedLogReader>(logs, tasks);
}

}  // namespace muster::kubernetes
