#include "controller/executor.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "controller/catch_exceptions.h"
#include "controller/job_key.h"
#include "controller/rules/create_failures.h"
#include "controller/rules/gang.h"
#include "k8s/error.h"

namespace muster::controller {
namespace {

// A PodGroup must exist before its pods. Pods and services may be created in any order.
bool MayRunInParallel(const Action& a, const Action& b) {
  const auto* first = std::get_if<Create>(&a);
  const auto* second = std::get_if<Create>(&b);
  return first != nullptr && second != nullptr && first->kind != Kind::kPodGroup &&
         second->kind != Kind::kPodGroup;
}

}  // namespace

Executor::Executor(k8s::Client& client, EventRecorder& recorder, Expectations& expectations,
                   WorkQueue& queue, int helpers)
    : client_(client),
      recorder_(recorder),
      expectations_(expectations),
      queue_(queue),
      pool_(helpers) {}

absl::Status Executor::Execute(const std::string& key, const TfJob& job,
                               const std::vector<Action>& actions) {
  std::vector<absl::Status> results(actions.size());
  for (size_t begin = 0, end = 0; begin < actions.size(); begin = end) {
    end = begin + 1;
    while (end < actions.size() && MayRunInParallel(actions[begin], actions[end])) ++end;
    // Parts also run on threads that reconcile other jobs, so none may throw.
    pool_.ParallelFor(end - begin, [&, begin](size_t part) {
      results[begin + part] = CatchExceptions([&]() -> absl::Status {
        if (stopping_) return absl::CancelledError("the operator is stopping");
        return std::visit([&](const auto& action) { return Do(key, job, action); },
                          actions[begin + part]);
      });
    });
  }
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const absl::Status& result) { return !result.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

absl::Status Executor::Do(const std::string& key, const TfJob& job, const Create& create) {
  const std::string& name = create.name;
  if (!expectations_.ExpectCreation(key, {create.kind, name})) {
    queue_.AddAfter(key, kExpectationRecheck);
    return absl::OkStatus();
  }
  const k8s::ResourceKind& kind = ResourceOf(create.kind, job.options().gang);
  const auto object = Build(job, create);
  absl::Status status = object.status();
  if (status.ok()) status = client_.Create(kind, *object, {.discard_response = true}).status();
  const bool exists = k8s::IsExistingObject(status);
  if (exists) status = CheckExisting(key, kind, {job.kubernetes_namespace(), name});
  expectations_.EndCreation(key, {create.kind, name}, status, exists);
  if (IsRejected(status)) return absl::OkStatus();  // the operator records all of them in one event
  if (exists && status.ok()) return status;
  if (!status.ok()) {
    recorder_.Record(job.object(), {true, absl::StrCat("FailedCreate", KindName(create.kind)),
                                    absl::StrCat("Error creating: ", status.message())});
    return status;
  }
  recorder_.Record(job.object(), {false, absl::StrCat("SuccessfulCreate", KindName(create.kind)),
                                  absl::StrCat("Created ", KindName(create.kind), ": ", name)});
  return absl::OkStatus();
}

// An existing object may be the job's own: created before a restart of the operator, or by a
// request whose response was lost. The caches will show it.
absl::Status Executor::CheckExisting(const std::string& key, const k8s::ResourceKind& kind,
                                     const k8s::ObjectKey& object) {
  const auto existing = client_.Get(kind, object);
  if (k8s::IsNoSuchObject(existing.status())) {
    return absl::AbortedError(
        absl::StrCat(object.name, " existed and has been deleted meanwhile; retrying"));
  }
  MUSTER_RETURN_IF_ERROR(existing.status());
  if (OwnerKeyOf(*existing) == key) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(object.name,
                                               " already exists and does not belong to the job; "
                                               "delete it or rename the job"));
}

absl::Status Executor::Do(const std::string& key, const TfJob& job, const Delete& removal) {
  if (!expectations_.ExpectDeletion(key, removal)) {
    queue_.AddAfter(key, kExpectationRecheck);
    return absl::OkStatus();
  }
  k8s::DeleteOptions options{.uid = removal.uid};
  if (removal.immediately) options.grace_seconds = 0;
  const absl::Status status = client_.Delete(ResourceOf(removal.kind, job.options().gang),
                                             {job.kubernetes_namespace(), removal.name}, options);
  // Conflict: another object has that name now, so this one is gone.
  if (k8s::IsNoSuchObject(status) || k8s::IsConflict(status)) return absl::OkStatus();
  if (!status.ok()) {
    expectations_.EndDeletion(key, removal.uid);
    recorder_.Record(job.object(), {true, absl::StrCat("FailedDelete", KindName(removal.kind)),
                                    absl::StrCat("Error deleting: ", status.message())});
    return status;
  }
  recorder_.Record(job.object(),
                   {false, absl::StrCat("SuccessfulDelete", KindName(removal.kind)),
                    absl::StrCat("Deleted ", KindName(removal.kind), ": ", removal.name,
                                 removal.reason.empty() ? "" : ", because ", removal.reason)});
  return absl::OkStatus();
}

absl::Status Executor::Do(const std::string& /*key*/, const TfJob& job, const Change& change) {
  const absl::Status status = client_
                                  .Patch(ResourceOf(change.kind, job.options().gang),
                                         {job.kubernetes_namespace(), change.name}, change.patch,
                                         {.strategic_patch = change.strategic})
                                  .status();
  return k8s::IsNoSuchObject(status) ? absl::OkStatus() : status;
}

absl::Status Executor::Do(const std::string& /*key*/, const TfJob& job, const DeleteJob&) {
  const Json& object = job.object();
  const absl::Status status =
      client_.Delete(JobKindOf(object), k8s::KeyOf(object), {.uid = k8s::UidOf(object)});
  return k8s::IsNoSuchObject(status) ? absl::OkStatus() : status;
}

}  // namespace muster::controller
