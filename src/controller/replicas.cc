#include "controller/replicas.h"

#include "controller/verdict.h"

namespace muster::controller {
namespace {

void RemoveUnwanted(Pass& pass, const RoleSpec& role) {
  for (const auto& [task, pod] : pass.pods()) {
    if (task.role != role.name) continue;
    if (task.index >= role.replicas || pod.deleting() || IsRetried(pass, role, task, pod)) {
      pass.Remove(Kind::kPod, pod);
    }
  }
  for (const auto& [task, service] : pass.services()) {
    if (task.role == role.name && task.index >= role.replicas) {
      pass.Remove(Kind::kService, service);
    }
  }
}

void MakeMissing(Pass& pass, const RoleSpec& role) {
  const TfJob& job = pass.job();
  for (int i = 0; i < role.replicas; ++i) {
    const TaskId task{role.name, i};
    pass.Make(Kind::kService, task, [&] { return job.ServiceOf(task); });
    if (!pass.HasSucceeded(task)) pass.Make(Kind::kPod, task, [&] { return job.PodOf(task); });
  }
}

}  // namespace

void FillRoles(Pass& pass) {
  for (const RoleSpec* role : pass.job().roles()) {
    RemoveUnwanted(pass, *role);
    MakeMissing(pass, *role);
  }
}

bool IsTensorboard(const TaskId& task) { return task.role == kTensorboard; }

void KeepTensorboard(Pass& pass) {
  const TaskId task{kTensorboard, 0};
  const TfJob& job = pass.job();
  const bool wanted = job.tensorboard() != nullptr;
  if (const Child* pod = pass.PodOf(task)) {
    const bool over = pod->phase() == Phase::kFailed || pod->phase() == Phase::kSucceeded;
    if (over || !wanted || pod->deleting()) pass.Remove(Kind::kPod, *pod);
  }
  if (wanted) {
    pass.Make(Kind::kService, task, [&] { return job.ServiceOf(task); });
    pass.Make(Kind::kPod, task, [&] { return job.PodOf(task); });
  } else if (const auto service = pass.services().find(task); service != pass.services().end()) {
    pass.Remove(Kind::kService, service->second);
  }
}

}  // namespace muster::controller
