#include "controller/operator.h"

#include <malloc.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "controller/cached_object.h"
#include "controller/children.h"
#include "controller/conditions.h"
#include "controller/gang.h"
#include "k8s/error.h"
#include "launch/kubernetes/pod_status.h"

namespace muster::controller {
namespace {

// After that long what was done is looked up again, whatever the copies say.
constexpr absl::Duration kForgetful = absl::Minutes(2);
constexpr absl::Duration kSyncPatience = absl::Minutes(2);
constexpr size_t kParsedJobs = 32;

const char* WordOf(Kind kind) {
  return kind == Kind::kPod ? "Pod" : kind == Kind::kService ? "Service" : "PodGroup";
}

std::string PathOf(const k8s::ResourceKind& kind) {
  return absl::StrCat(kind.group, "/", kind.plural);
}

// Of a job in the queue; jobs of both kinds may have the same name.
std::string Key(const k8s::ResourceKind& kind, const std::string& name_space,
                const std::string& name) {
  return absl::StrCat(kind.group, "/", name_space, "/", name);
}
std::string KeyOfJob(const Json& job) {
  return Key(JobKindOf(job), k8s::KeyOf(job).name_space, k8s::NameOf(job));
}

// The job that an object belongs to, by its labels.
std::string JobKeyOf(const Json& object) {
  const k8s::ResourceKind* kind = OwnerKindOf(object);
  const std::string name = k8s::LabelOf(object, kubernetes::kTfJobNameLabel);
  if (kind == nullptr || name.empty()) return "";
  return Key(*kind, k8s::KeyOf(object).name_space, name);
}

// A gang's group comes before its pods; else it does not matter what is there first.
bool MayBeMadeAtOnce(const Action& a, const Action& b) {
  const auto* first = std::get_if<Create>(&a);
  const auto* second = std::get_if<Create>(&b);
  return first != nullptr && second != nullptr && first->kind != Kind::kPodGroup &&
         second->kind != Kind::kPodGroup;
}

// Versions are numbers that grow, in every server there is.
bool IsOlder(const Json& a, const Json& b) {
  uint64_t first = 0, second = 0;
  return absl::SimpleAtoi(k8s::ResourceVersionOf(a), &first) &&
         absl::SimpleAtoi(k8s::ResourceVersionOf(b), &second) && first < second;
}

}  // namespace

Operator::Operator(k8s::Client& client, OperatorOptions options)
    : client_(client),
      options_(std::move(options)),
      teller_(options_.events ? *options_.events : client, options_.log,
              [this] { return at_work_ > 0; }),
      crew_(options_.helpers) {
  FollowJobs(kTfJobs);
  FollowJobs(kOldTfJobs);
  FollowOwned(Kind::kPod);
  FollowOwned(Kind::kService);
  if (options_.job.gang != GangScheduler::kNone) FollowOwned(Kind::kPodGroup);
}

const k8s::ResourceKind& Operator::ResourceOf(Kind kind) const {
  if (kind == Kind::kPodGroup) return PodGroupKind(options_.job.gang);
  return kind == Kind::kPod ? k8s::kPods : k8s::kServices;
}

void Operator::FollowJobs(const k8s::ResourceKind& kind) {
  k8s::InformerOptions options = Follow(kind);
  options.transform = [](Json& job) {
    if (job.contains("metadata")) job["metadata"].erase("managedFields");
  };
  options.on_error = [this, kind, broken = options.on_error](const absl::Status& status) {
    // Nobody need have jobs of the older kind, nor the right to see them.
    const bool not_asked = kind.group == kOldTfJobs.group && k8s::IsForbidden(status);
    if (!k8s::IsUnknownResource(status) && !not_asked) return broken(status);
    absl::MutexLock lock(&mutex_);
    if (!missing_.emplace(PathOf(kind), status).second) return;  // once is enough
    options_.log(
        absl::StrCat(status.message(), "; jobs of ", kind.ApiVersion(), " wait until it is there"));
  };
  k8s::InformerHandler handler{
      .added =
          [this](const k8s::Object& job) {
            if (ready_) {
              absl::MutexLock lock(&mutex_);
              ++counts_[k8s::KeyOf(*job).name_space].created;
            }
            Look(KeyOfJob(*job));
          },
      .updated = [this](const k8s::Object&, const k8s::Object& job) { Look(KeyOfJob(*job)); },
      .deleted =
          [this](const k8s::Object& job) {
            absl::MutexLock lock(&mutex_);
            ++counts_[k8s::KeyOf(*job).name_space].deleted;
            pending_.erase(KeyOfJob(*job));
            parsed_.erase(KeyOfJob(*job));
            queue_.Forget(KeyOfJob(*job));
          }};
  jobs_[std::string(kind.group)] =
      std::make_unique<k8s::Informer>(client_, std::move(options), std::move(handler));
}

void Operator::FollowOwned(Kind kind) {
  k8s::InformerOptions options = Follow(ResourceOf(kind));
  options.selection.labels = OwnedSelector();
  options.index = JobKeyOf;
  options.watch.detail = kind == Kind::kService ? k8s::Detail::kMetadata
                         : kind == Kind::kPod   ? k8s::Detail::kStatus
                                                : k8s::Detail::kAll;
  options.transform = [kind](Json& object) {
    if (kind == Kind::kPodGroup) {
      if (object.contains("metadata")) object["metadata"].erase("managedFields");
      object.erase("status");
    } else {
      KeepWhatCounts(object);
    }
  };
  k8s::InformerHandler handler{
      .added = [this, kind](const k8s::Object& object) { Seen(kind, *object, false); },
      .updated = [this, kind](const k8s::Object&,
                              const k8s::Object& object) { Seen(kind, *object, false); },
      .deleted = [this, kind](const k8s::Object& object) { Seen(kind, *object, true); }};
  owned_[kind] = std::make_unique<k8s::Informer>(client_, std::move(options), std::move(handler));
}

k8s::InformerOptions Operator::Follow(const k8s::ResourceKind& kind) {
  k8s::InformerOptions options{.kind = kind};
  options.selection.name_space = options_.name_space;
  options.on_error = [this, kind](const absl::Status& status) {
    options_.log(absl::StrCat(kind.plural, ": ", status.message()));
    // What time alone does not mend; an untrusted server is a FailedPrecondition.
    if (k8s::IsUnknownResource(status) || k8s::IsForbidden(status) ||
        absl::IsUnauthenticated(status) || absl::IsFailedPrecondition(status)) {
      absl::MutexLock lock(&mutex_);
      broken_[PathOf(kind)] = status;
    }
  };
  return options;
}

std::vector<k8s::Informer*> Operator::All() const {
  std::vector<k8s::Informer*> all;
  for (const auto& [group, informer] : jobs_) all.push_back(informer.get());
  for (const auto& [kind, informer] : owned_) all.push_back(informer.get());
  return all;
}

void Operator::Look(const std::string& key) {
  if (!key.empty()) queue_.Add(key);
}

void Operator::Seen(Kind kind, const Json& object, bool gone) {
  const std::string key = JobKeyOf(object);
  {
    absl::MutexLock lock(&mutex_);
    if (const auto pending = pending_.find(key); pending != pending_.end()) {
      if (gone) {
        pending->second.deletions.erase(k8s::UidOf(object));
      } else {
        pending->second.creations.erase({kind, k8s::NameOf(object)});
      }
    }
  }
  Look(key);
}

// OK also when `stop` ended the wait.
absl::Status Operator::WaitUntilSynced(const std::stop_token& stop) {
  const absl::Time limit = absl::Now() + kSyncPatience;
  const auto wait = [&](const k8s::Informer& informer, const std::string& path) {
    while (!informer.WaitUntilSynced(absl::Milliseconds(100)) && !stop.stop_requested()) {
      absl::MutexLock lock(&mutex_);
      if (broken_.contains(path)) return broken_.at(path);
      if (missing_.contains(path)) return absl::OkStatus();
      if (absl::Now() > limit) return absl::UnavailableError("the cluster does not answer");
    }
    return absl::OkStatus();
  };
  for (const k8s::ResourceKind& kind : {kTfJobs, kOldTfJobs}) {
    MUSTER_RETURN_IF_ERROR(wait(*jobs_.at(std::string(kind.group)), PathOf(kind)));
  }
  for (const auto& [kind, informer] : owned_) {
    MUSTER_RETURN_IF_ERROR(wait(*informer, PathOf(ResourceOf(kind))));
  }
  absl::MutexLock lock(&mutex_);
  return missing_.size() == jobs_.size() ? missing_.at(PathOf(kTfJobs)) : absl::OkStatus();
}

absl::Status Operator::Run(const std::stop_token& stop) {
  for (k8s::Informer* informer : All()) informer->Start();
  MUSTER_RETURN_IF_ERROR(WaitUntilSynced(stop));
  if (stop.stop_requested()) return absl::OkStatus();
  ready_ = true;
  ::malloc_trim(0);  // what the lists took, most of which was dropped
  size_t jobs = 0;
  for (const auto& [group, informer] : jobs_) jobs += informer->cache().All().size();
  options_.log(absl::StrCat("ready: ", jobs, " jobs"));
  {
    const std::stop_callback close(stop, [this] { queue_.Close(); });
    std::vector<std::jthread> workers;
    workers.reserve(static_cast<size_t>(options_.workers));
    for (int i = 0; i < options_.workers; ++i) workers.emplace_back([this] { Work(); });
  }
  for (k8s::Informer* informer : All()) informer->Stop();
  return absl::OkStatus();
}

void Operator::Work() {
  while (const auto key = queue_.Take()) {
    ++at_work_;
    const absl::Status status = Reconcile(*key);
    --at_work_;
    if (status.ok()) {
      queue_.Forget(*key);
    } else {
      if (!k8s::IsConflict(status)) options_.log(absl::StrCat(*key, ": ", status.message()));
      queue_.AddAfterFailure(*key);
    }
    queue_.Done(*key);
  }
}

Json Operator::JobOf(const std::string& key) {
  const std::vector<std::string> parts = absl::StrSplit(key, '/');
  const k8s::Object cached = jobs_.at(parts.at(0))->cache().Get({parts.at(1), parts.at(2)});
  if (cached == nullptr) return nullptr;
  absl::MutexLock lock(&mutex_);
  Pending& pending = pending_[key];
  // The copy may lag behind what we have written ourselves.
  if (pending.written.is_object() && k8s::UidOf(pending.written) == k8s::UidOf(*cached) &&
      IsOlder(*cached, pending.written)) {
    return pending.written;
  }
  pending.written = nullptr;
  if (absl::Now() - pending.since > kForgetful) {
    pending.creations.clear();
    pending.deletions.clear();
  }
  return *cached;
}

ObjectNames Operator::UnderWay(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const Pending& pending = pending_[key];
  if (!pending.creations.empty()) queue_.AddAfter(key, 2 * kForgetful);
  return pending.creations;
}

bool Operator::Begins(const std::string& key, const Observed& observed, const Plan& plan) {
  const auto creates = [](const Action& action) { return std::holds_alternative<Create>(action); };
  // Then nothing has been counted yet, nor judged.
  const bool is_new =
      observed.pods.empty() && StatusOf(observed.job).empty() && !IsFinished(plan.status);
  if (!is_new || plan.actions.empty() ||
      !std::all_of(plan.actions.begin(), plan.actions.end(), creates)) {
    return false;
  }
  absl::MutexLock lock(&mutex_);
  return pending_[key].since == absl::InfinitePast();
}

absl::Status Operator::Reconcile(const std::string& key) {
  const Json job = JobOf(key);
  if (job.is_null()) return absl::OkStatus();
  // Before the copies are looked at: what shows up in between is in neither.
  Observed observed{.job = job, .spec = SpecOf(key, job), .under_way = UnderWay(key)};
  const auto collect = [&](Kind kind, std::vector<k8s::Object>& objects) {
    const auto informer = owned_.find(kind);
    if (informer != owned_.end()) objects = informer->second->cache().Indexed(key);
  };
  collect(Kind::kPod, observed.pods);
  collect(Kind::kService, observed.services);
  collect(Kind::kPodGroup, observed.pod_groups);
  const absl::Time now = absl::Now();
  const Plan plan = controller::Reconcile(observed, options_.job, now);
  if (Begins(key, observed, plan)) {
    MUSTER_RETURN_IF_ERROR(Carry(key, job, plan.actions));
    queue_.Add(key);  // its status can wait until other new jobs have what they need
    return absl::OkStatus();
  }
  if (plan.status_changed) MUSTER_RETURN_IF_ERROR(WriteStatus(key, job, plan));
  for (const Event& event : plan.events) teller_.Tell(job, event);
  const absl::Status carried = Carry(key, job, plan.actions);
  if (plan.wake != absl::InfiniteFuture()) queue_.AddAfter(key, plan.wake - now);
  // What the verdict leaves to be done is done at once, not when the copy shows it.
  if (plan.status_changed && IsFinished(plan.status)) queue_.Add(key);
  return carried;
}

std::shared_ptr<const JobSpec> Operator::SpecOf(const std::string& key, const Json& job) {
  Parsed now{.uid = k8s::UidOf(job), .annotations = ObjectAt(job, "/metadata/annotations")};
  // It counts the changes of the spec.
  if (const Json* generation = k8s::Find(job, "/metadata/generation")) now.generation = *generation;
  {
    absl::MutexLock lock(&mutex_);
    const auto known = parsed_.find(key);
    if (known != parsed_.end() && known->second.uid == now.uid && !now.generation.is_null() &&
        known->second.generation == now.generation &&
        known->second.annotations == now.annotations) {
      return known->second.spec;
    }
  }
  auto spec = TfJob::ReadSpec(job);
  if (!spec.ok()) return nullptr;
  now.spec = std::make_shared<const JobSpec>(*std::move(spec));
  absl::MutexLock lock(&mutex_);
  if (parsed_.size() >= kParsedJobs) parsed_.clear();  // those that matter are soon back
  return (parsed_[key] = std::move(now)).spec;
}

absl::Status Operator::WriteStatus(const std::string& key, const Json& job, const Plan& plan) {
  Json changed = job;
  changed["status"] = plan.status;
  MUSTER_ASSIGN_OR_RETURN(Json written,
                          client_.Update(JobKindOf(job), changed, {.subresource = "status"}));
  if (written.contains("metadata")) written["metadata"].erase("managedFields");
  CountVerdict(job, plan);
  absl::MutexLock lock(&mutex_);
  pending_[key].written = std::move(written);
  return absl::OkStatus();
}

void Operator::CountVerdict(const Json& job, const Plan& plan) {
  const Json before = StatusOf(job);
  absl::MutexLock lock(&mutex_);
  JobCounts& counts = counts_[k8s::KeyOf(job).name_space];
  if (!IsTrue(before, kSucceeded) && IsTrue(plan.status, kSucceeded)) ++counts.succeeded;
  if (!IsTrue(before, kFailed) && IsTrue(plan.status, kFailed)) ++counts.failed;
  if (!IsTrue(before, kRestarting) && IsTrue(plan.status, kRestarting)) ++counts.restarted;
}

std::map<std::string, JobCounts> Operator::Counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

absl::Status Operator::Carry(const std::string& key, const Json& job,
                             const std::vector<Action>& actions) {
  std::vector<absl::Status> results(actions.size());
  for (size_t begin = 0, end = 0; begin < actions.size(); begin = end) {
    end = begin + 1;
    while (end < actions.size() && MayBeMadeAtOnce(actions[begin], actions[end])) ++end;
    crew_.Share(end - begin, [&, begin](size_t part) {
      results[begin + part] =
          std::visit([&](const auto& one) { return Do(key, job, one); }, actions[begin + part]);
    });
  }
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const absl::Status& result) { return !result.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

absl::Status Operator::Do(const std::string& key, const Json& job, const Create& create) {
  const std::string name = k8s::NameOf(create.object);
  {
    absl::MutexLock lock(&mutex_);
    Pending& pending = pending_[key];
    if (!pending.creations.insert({create.kind, name}).second) {
      queue_.AddAfter(key, 2 * kForgetful);  // should it never show
      return absl::OkStatus();
    }
    pending.since = absl::Now();
  }
  absl::Status status =
      client_.Create(ResourceOf(create.kind), create.object, {.without_answer = true}).status();
  const bool exists = k8s::IsExistingObject(status);
  if (exists) status = CheckExisting(key, create);
  if (exists || !status.ok()) {
    absl::MutexLock lock(&mutex_);
    pending_[key].creations.erase({create.kind, name});
  }
  if (exists && status.ok()) return status;
  if (!status.ok()) {
    teller_.Tell(job, {true, absl::StrCat("FailedCreate", WordOf(create.kind)),
                       absl::StrCat("Error creating: ", status.message())});
    return status;
  }
  teller_.Tell(job, {false, absl::StrCat("SuccessfulCreate", WordOf(create.kind)),
                     absl::StrCat("Created ", WordOf(create.kind), ": ", name)});
  return absl::OkStatus();
}

// What has the name already may be the job's own, made before we were started again or without an
// answer: the copies will show it.
absl::Status Operator::CheckExisting(const std::string& key, const Create& create) {
  MUSTER_ASSIGN_OR_RETURN(const Json there,
                          client_.Get(ResourceOf(create.kind), k8s::KeyOf(create.object)));
  if (JobKeyOf(there) == key) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(k8s::NameOf(create.object),
                                               " is there already and does not belong to the job; "
                                               "delete it, or give the job another name"));
}

absl::Status Operator::Do(const std::string& key, const Json& job, const Delete& removal) {
  {
    absl::MutexLock lock(&mutex_);
    Pending& pending = pending_[key];
    if (!removal.at_once && !pending.deletions.insert(removal.uid).second) {
      queue_.AddAfter(key, 2 * kForgetful);
      return absl::OkStatus();
    }
    pending.since = absl::Now();
  }
  k8s::DeleteOptions options{.uid = removal.uid};
  if (removal.at_once) options.grace_seconds = 0;
  const absl::Status status =
      client_.Delete(ResourceOf(removal.kind), {k8s::KeyOf(job).name_space, removal.name}, options);
  if (k8s::IsNoSuchObject(status) || k8s::IsConflict(status)) return absl::OkStatus();
  if (!status.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      pending_[key].deletions.erase(removal.uid);
    }
    teller_.Tell(job, {true, absl::StrCat("FailedDelete", WordOf(removal.kind)),
                       absl::StrCat("Error deleting: ", status.message())});
    return status;
  }
  teller_.Tell(job, {false, absl::StrCat("SuccessfulDelete", WordOf(removal.kind)),
                     absl::StrCat("Deleted ", WordOf(removal.kind), ": ", removal.name,
                                  removal.why.empty() ? "" : ", because ", removal.why)});
  return absl::OkStatus();
}

absl::Status Operator::Do(const std::string& /*key*/, const Json& job, const Change& change) {
  const absl::Status status =
      client_
          .Patch(ResourceOf(change.kind), {k8s::KeyOf(job).name_space, change.name}, change.patch)
          .status();
  return k8s::IsNoSuchObject(status) ? absl::OkStatus() : status;
}

absl::Status Operator::Do(const std::string& /*key*/, const Json& job, const DeleteJob&) {
  const absl::Status status =
      client_.Delete(JobKindOf(job), k8s::KeyOf(job), {.uid = k8s::UidOf(job)});
  return k8s::IsNoSuchObject(status) ? absl::OkStatus() : status;
}

}  // namespace muster::controller
