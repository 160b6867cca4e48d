#include "controller/operator.h"

#include <malloc.h>

#include <algorithm>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "controller/cached_object.h"
#include "controller/children.h"
#include "controller/conditions.h"
#include "controller/gang.h"
#include "controller/guard.h"
#include "controller/job_key.h"
#include "controller/refusals.h"
#include "k8s/error.h"
#include "launch/kubernetes/kept_status.h"
#include "launch/kubernetes/pod_status.h"

namespace muster::controller {
namespace {

// Should the caches never show what was asked for, the job is looked at again: when that is
// forgotten, see Expectations.
constexpr absl::Duration kLookAgain = absl::Minutes(4);
static_assert(kLookAgain > Expectations::kForgetAfter);
constexpr absl::Duration kSyncPatience = absl::Minutes(2);

std::string PathOf(const k8s::ResourceKind& kind) {
  return absl::StrCat(kind.group, "/", kind.plural);
}

// A gang's group comes before its pods; else it does not matter what is there first.
bool MayBeMadeAtOnce(const Action& a, const Action& b) {
  const auto* first = std::get_if<Create>(&a);
  const auto* second = std::get_if<Create>(&b);
  return first != nullptr && second != nullptr && first->kind != Kind::kPodGroup &&
         second->kind != Kind::kPodGroup;
}

// Half of an object, and of no use.
void DropManagedFields(Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
}

}  // namespace

Operator::Operator(k8s::Client& client, OperatorOptions options)
    : client_(client),
      options_(std::move(options)),
      teller_(options_.events ? *options_.events : client, options_.log,
              [this] { return at_work_ > 0; }),
      crew_(options_.helpers),
      specs_(options_.job) {
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
  options.transform = DropManagedFields;
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
            if (ready_) counter_.Created(*job);
            Look(KeyOfJob(*job));
          },
      .updated = [this](const k8s::Object&, const k8s::Object& job) { Look(KeyOfJob(*job)); },
      .deleted =
          [this](const k8s::Object& job) {
            specs_.Forget(KeyOfJob(*job));
            counter_.Deleted(*job);
            expected_.Forget(KeyOfJob(*job));
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
      DropManagedFields(object);
      object["status"] = {{"phase", k8s::TextAt(object, "/status/phase")}};
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
  if (gone) {
    expected_.EndDeletion(key, k8s::UidOf(object));
  } else {
    expected_.Appeared(key, {kind, k8s::NameOf(object)});
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
  options_.log(absl::StrCat("ready: ", Plural(static_cast<int64_t>(jobs), "job")));
  {
    const std::stop_callback close(stop, [this] {
      stopping_ = true;
      queue_.Close();
    });
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
    const absl::Status status = TryPass(*key);
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
  if (cached != nullptr) return expected_.Newest(key, *cached);
  expected_.Forget(key);  // an object that goes after its job has the job looked at once more
  return nullptr;
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
  return expected_.IsNew(key);
}

absl::Status Operator::TryPass(const std::string& key) {
  const absl::Status status = Guarded([&] { return Reconcile(key); });
  if (!IsThrown(status)) return status;
  const absl::Status given_up = Guarded([&] { return GiveUp(key, status); });
  return given_up.ok() ? status : given_up;
}

absl::Status Operator::GiveUp(const std::string& key, const absl::Status& why) {
  const Json job = JobOf(key);
  if (job.is_null()) return absl::OkStatus();
  const Observed observed = Observe(key, job);
  if (!observed.pods.empty()) {
    teller_.Tell(job, {true, "ReconcileError", std::string(why.message())});
    return absl::OkStatus();
  }
  return Publish(key, job, Refuse(observed, why, absl::Now()));
}

Observed Operator::Observe(const std::string& key, Json job) {
  // Before the copies are looked at: what shows up in between is in neither.
  Observed observed{.job = std::move(job), .under_way = expected_.Creations(key)};
  if (!observed.under_way.empty()) queue_.AddAfter(key, kLookAgain);
  observed.refused = expected_.RefusedFor(key, observed.job);
  const auto collect = [&](Kind kind, std::vector<k8s::Object>& objects) {
    const auto informer = owned_.find(kind);
    if (informer != owned_.end()) objects = informer->second->cache().Indexed(key);
  };
  collect(Kind::kPod, observed.pods);
  collect(Kind::kService, observed.services);
  collect(Kind::kPodGroup, observed.pod_groups);
  return observed;
}

absl::Status Operator::Reconcile(const std::string& key) {
  Json found = JobOf(key);
  if (found.is_null()) return absl::OkStatus();
  Observed observed = Observe(key, std::move(found));
  const Json& job = observed.job;
  observed.spec = specs_.Get(key, job);
  const absl::Time now = absl::Now();
  const Plan plan = controller::Reconcile(observed, options_.job, now);
  if (Begins(key, observed, plan)) {
    const absl::Status carried = Carry(key, job, plan.actions);
    TellRefusals(key, job);
    MUSTER_RETURN_IF_ERROR(carried);
    queue_.Add(key);  // its status can wait until other new jobs have what they need
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(Publish(key, job, plan));
  const absl::Status carried = Carry(key, job, plan.actions);
  TellRefusals(key, job);
  if (plan.wake != absl::InfiniteFuture()) queue_.AddAfter(key, plan.wake - now);
  // What the verdict leaves to be done is done at once, not when the copy shows it.
  if (plan.status_changed && IsFinished(plan.status)) queue_.Add(key);
  return carried;
}

absl::Status Operator::Publish(const std::string& key, const Json& job, const Plan& plan) {
  Json written;
  if (plan.status_changed) {
    Json changed = job;
    changed["status"] = plan.status;
    MUSTER_ASSIGN_OR_RETURN(written,
                            client_.Update(JobKindOf(job), changed, {.subresource = "status"}));
    counter_.Changed(job, plan.status);
  }
  for (const Event& event : plan.events) teller_.Tell(job, event);
  if (!plan.status_changed) return absl::OkStatus();
  // Before anything is done that was counted.
  if (const Json patch = kubernetes::PatchForPruned(written, plan.status); !patch.is_null()) {
    MUSTER_ASSIGN_OR_RETURN(written, client_.Patch(JobKindOf(job), k8s::KeyOf(job), patch));
  }
  DropManagedFields(written);
  expected_.Written(key, std::move(written));
  return absl::OkStatus();
}

absl::Status Operator::Carry(const std::string& key, const Json& job,
                             const std::vector<Action>& actions) {
  const TfJob tf_job(job, specs_.Get(key, job), options_.job);
  const auto carry = [&](const auto& one) {
    if constexpr (std::is_same_v<decltype(one), const Create&>) {
      return Do(key, tf_job, one);
    } else {
      return Do(key, job, one);
    }
  };
  std::vector<absl::Status> results(actions.size());
  for (size_t begin = 0, end = 0; begin < actions.size(); begin = end) {
    end = begin + 1;
    while (end < actions.size() && MayBeMadeAtOnce(actions[begin], actions[end])) ++end;
    // In threads of others, too: an exception of one part must not end them.
    crew_.Share(end - begin, [&, begin](size_t part) {
      results[begin + part] = Guarded([&]() -> absl::Status {
        if (stopping_) return absl::CancelledError("the operator stops");
        return std::visit(carry, actions[begin + part]);
      });
    });
  }
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const absl::Status& result) { return !result.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

absl::Status Operator::Do(const std::string& key, const TfJob& job, const Create& create) {
  const std::string& name = create.name;
  if (!expected_.BeginCreation(key, {create.kind, name})) {
    queue_.AddAfter(key, kLookAgain);
    return absl::OkStatus();
  }
  const auto object = Build(job, create);
  absl::Status status = object.status();
  if (status.ok()) {
    status = client_.Create(ResourceOf(create.kind), *object, {.without_answer = true}).status();
  }
  const bool exists = k8s::IsExistingObject(status);
  if (exists) status = CheckExisting(key, {job.kubernetes_namespace(), name}, create.kind);
  expected_.EndCreation(key, {create.kind, name}, status, exists);
  if (IsRefusal(status)) return absl::OkStatus();  // TellRefusals() has it
  if (exists && status.ok()) return status;
  if (!status.ok()) {
    teller_.Tell(job.object(), {true, absl::StrCat("FailedCreate", WordOf(create.kind)),
                                absl::StrCat("Error creating: ", status.message())});
    return status;
  }
  teller_.Tell(job.object(), {false, absl::StrCat("SuccessfulCreate", WordOf(create.kind)),
                              absl::StrCat("Created ", WordOf(create.kind), ": ", name)});
  return absl::OkStatus();
}

void Operator::TellRefusals(const std::string& key, const Json& job) {
  const Refusals refused = expected_.TakeNewRefusals(key);
  if (refused.empty()) return;
  const std::string text = Describe(refused);
  options_.log(absl::StrCat(key, ": ", text));
  teller_.Tell(job, {true, absl::StrCat("FailedCreate", WordOf(refused.begin()->first.first)),
                     absl::StrCat("Error creating: ", text)});
  queue_.Add(key);  // the job's condition says so
}

// What has the name already may be the job's own, made before we were started again or without an
// answer: the copies will show it.
absl::Status Operator::CheckExisting(const std::string& key, const k8s::ObjectKey& object,
                                     Kind kind) {
  const auto there = client_.Get(ResourceOf(kind), object);
  if (k8s::IsNoSuchObject(there.status())) {
    return absl::AbortedError(absl::StrCat(object.name, " was there and is gone; tried again"));
  }
  MUSTER_RETURN_IF_ERROR(there.status());
  if (JobKeyOf(*there) == key) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(object.name,
                                               " is there already and does not belong to the job; "
                                               "delete it, or give the job another name"));
}

absl::Status Operator::Do(const std::string& key, const Json& job, const Delete& removal) {
  if (!expected_.BeginDeletion(key, removal)) {
    queue_.AddAfter(key, kLookAgain);
    return absl::OkStatus();
  }
  k8s::DeleteOptions options{.uid = removal.uid};
  if (removal.at_once) options.grace_seconds = 0;
  const absl::Status status =
      client_.Delete(ResourceOf(removal.kind), {k8s::KeyOf(job).name_space, removal.name}, options);
  if (k8s::IsNoSuchObject(status) || k8s::IsConflict(status)) return absl::OkStatus();
  if (!status.ok()) {
    expected_.EndDeletion(key, removal.uid);
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
          .Patch(ResourceOf(change.kind), {k8s::KeyOf(job).name_space, change.name}, change.patch,
                 {.strategic_patch = change.strategic})
          .status();
  return k8s::IsNoSuchObject(status) ? absl::OkStatus() : status;
}

absl::Status Operator::Do(const std::string& /*key*/, const Json& job, const DeleteJob&) {
  const absl::Status status =
      client_.Delete(JobKindOf(job), k8s::KeyOf(job), {.uid = k8s::UidOf(job)});
  return k8s::IsNoSuchObject(status) ? absl::OkStatus() : status;
}

}  // namespace muster::controller
