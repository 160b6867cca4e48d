#include "controller/operator.h"

#include <malloc.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "controller/catch_exceptions.h"
#include "controller/job_key.h"
#include "controller/rules/cached_object.h"
#include "controller/rules/conditions.h"
#include "controller/rules/create_failures.h"
#include "k8s/error.h"
#include "manifest/kept_status.h"

namespace muster::controller {

Operator::Operator(k8s::Client& client, OperatorOptions options)
    : client_(client),
      options_(std::move(options)),
      recorder_(options_.events ? *options_.events : client, options_.log,
                [this] { return busy_workers_ > 0; }),
      specs_(options_.job),
      executor_(client, recorder_, expectations_, queue_, options_.helpers),
      informers_(client, {.ns = options_.ns, .gang = options_.job.gang, .log = options_.log},
                 MakeHandler()) {}

JobHandler Operator::MakeHandler() {
  return {.job_added =
              [this](const Json& job) {
                if (ready_) counter_.Created(job);  // the first list holds older jobs
                Enqueue(KeyOfJob(job));
              },
          .job_updated = [this](const Json& job) { Enqueue(KeyOfJob(job)); },
          .job_deleted =
              [this](const Json& job) {
                const std::string key = KeyOfJob(job);
                specs_.Forget(key);
                counter_.Deleted(job);
                expectations_.Forget(key);
                queue_.Forget(key);
              },
          .owned_changed = [this](Kind kind, const Json& object,
                                  bool deleted) { OnOwnedChanged(kind, object, deleted); }};
}

void Operator::Enqueue(const std::string& key) {
  if (!key.empty()) queue_.Add(key);
}

void Operator::OnOwnedChanged(Kind kind, const Json& object, bool deleted) {
  const std::string key = OwnerKeyOf(object);
  if (deleted) {
    expectations_.EndDeletion(key, k8s::UidOf(object));
  } else {
    expectations_.CreationObserved(key, {kind, k8s::NameOf(object)});
  }
  Enqueue(key);
}

absl::Status Operator::Run(const std::stop_token& stop) {
  informers_.Start();
  MUSTER_RETURN_IF_ERROR(informers_.WaitUntilSynced(stop));
  if (stop.stop_requested()) return absl::OkStatus();
  ready_ = true;
  ::malloc_trim(0);  // the lists were large, and the caches keep a small part of them
  options_.log(
      absl::StrCat("ready: ", base::Plural(static_cast<int64_t>(informers_.JobCount()), "job")));
  {
    const std::stop_callback close(stop, [this] {
      executor_.Stop();
      queue_.ShutDown();
    });
    std::vector<std::jthread> workers;
    workers.reserve(static_cast<size_t>(options_.workers));
    for (int i = 0; i < options_.workers; ++i) workers.emplace_back([this] { RunWorker(); });
  }
  informers_.Stop();
  return absl::OkStatus();
}

void Operator::RunWorker() {
  while (const auto key = queue_.Get()) {
    ++busy_workers_;
    const absl::Status status = TryReconcile(*key);
    --busy_workers_;
    if (status.ok()) {
      queue_.Forget(*key);
    } else {
      // A conflict is routine: the cache was behind, and the retry sees the newer version.
      if (!k8s::IsConflict(status)) options_.log(absl::StrCat(*key, ": ", status.message()));
      queue_.AddRateLimited(*key);
    }
    queue_.Done(*key);
  }
}

Json Operator::JobOf(const std::string& key) {
  const k8s::Object cached = informers_.Job(key);
  if (cached != nullptr) return expectations_.Newest(key, *cached);
  // An object that is deleted after its job enqueues the job once more, which makes a new entry.
  expectations_.Forget(key);
  return nullptr;
}

bool Operator::CreatesObjectsFirst(const std::string& key, const Observed& observed,
                                   const Plan& plan) {
  const auto creates = [](const Action& action) { return std::holds_alternative<Create>(action); };
  // Such a job has no counts and no outcome that must be written before anything else is done.
  const bool is_new =
      observed.pods.empty() && StatusOf(observed.job).empty() && !IsFinished(plan.status);
  if (!is_new || plan.actions.empty() ||
      !std::all_of(plan.actions.begin(), plan.actions.end(), creates)) {
    return false;
  }
  return expectations_.IsNew(key);
}

absl::Status Operator::TryReconcile(const std::string& key) {
  const absl::Status status = CatchExceptions([&] { return Reconcile(key); });
  if (!IsFromException(status)) return status;
  const absl::Status handled = CatchExceptions([&] { return HandleException(key, status); });
  return handled.ok() ? status : handled;
}

absl::Status Operator::HandleException(const std::string& key, const absl::Status& error) {
  const Json job = JobOf(key);
  if (job.is_null()) return absl::OkStatus();
  const Observed observed = Observe(key, job);
  if (!observed.pods.empty()) {
    recorder_.Record(job, {true, "ReconcileError", std::string(error.message())});
    return absl::OkStatus();
  }
  return Publish(key, job, FailJob(observed, error, absl::Now()));
}

Observed Operator::Observe(const std::string& key, Json job) {
  // The expectations are read before the caches. In the other order, an object that the informer
  // adds in between would be in neither, and would be created twice.
  Observed observed{.job = std::move(job), .pending_creations = expectations_.Creations(key)};
  if (!observed.pending_creations.empty()) queue_.AddAfter(key, kExpectationRecheck);
  observed.create_failures = expectations_.CreateFailuresFor(key, observed.job);
  observed.pods = informers_.Owned(Kind::kPod, key);
  observed.services = informers_.Owned(Kind::kService, key);
  observed.pod_groups = informers_.Owned(Kind::kPodGroup, key);
  observed.config_maps = informers_.Owned(Kind::kConfigMap, key);
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
  if (CreatesObjectsFirst(key, observed, plan)) {
    MUSTER_RETURN_IF_ERROR(Execute(key, job, plan));
    queue_.Add(key);  // writes the status after other new jobs have got their objects
    return absl::OkStatus();
  }
  MUSTER_RETURN_IF_ERROR(Publish(key, job, plan));
  const absl::Status executed = Execute(key, job, plan);
  if (plan.requeue_at != absl::InfiniteFuture()) queue_.AddAfter(key, plan.requeue_at - now);
  // The cleanup after the outcome starts immediately, not when the cache shows the new status.
  if (plan.status_changed && IsFinished(plan.status)) queue_.Add(key);
  return executed;
}

absl::Status Operator::Execute(const std::string& key, const Json& job, const Plan& plan) {
  const TfJob tf_job(job, specs_.Get(key, job), options_.job);
  const absl::Status executed = executor_.Execute(key, tf_job, plan.actions);
  RecordCreateFailures(key, job);
  return executed;
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
  for (const Event& event : plan.events) recorder_.Record(job, event);
  if (!plan.status_changed) return absl::OkStatus();
  // A CRD that prunes status fields drops the restart counts. They go into an annotation before
  // the restarts that they count are executed.
  if (const Json patch = manifest::PatchForPruned(written, plan.status); !patch.is_null()) {
    MUSTER_ASSIGN_OR_RETURN(written, client_.Patch(JobKindOf(job), k8s::KeyOf(job), patch));
  }
  DropManagedFields(written);
  expectations_.RecordWrite(key, std::move(written));
  return absl::OkStatus();
}

void Operator::RecordCreateFailures(const std::string& key, const Json& job) {
  const CreateFailures failures = expectations_.TakeNewCreateFailures(key);
  if (failures.empty()) return;
  const std::string text = Describe(failures);
  options_.log(absl::StrCat(key, ": ", text));
  recorder_.Record(job,
                   {true, absl::StrCat("FailedCreate", KindName(failures.begin()->first.first)),
                    absl::StrCat("Error creating: ", text)});
  queue_.Add(key);  // sets the job's condition
}

}  // namespace muster::controller
