#include "controller/gang.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::controller {
namespace {

constexpr k8s::ResourceKind kVolcanoGroups{"scheduling.volcano.sh", "v1beta1", "podgroups",
                                           "PodGroup"};
constexpr k8s::ResourceKind kPluginGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                          "PodGroup"};
constexpr char kVolcanoGroup[] = "scheduling.k8s.io/group-name";
constexpr char kPluginGroup[] = "scheduling.x-k8s.io/pod-group";

// The tasks that must be able to run together: all that have not succeeded yet, but those that are
// not made before others run.
int Members(Pass& pass) {
  const JobSpec& spec = pass.job().spec();
  const std::vector<std::string> order = pass.job().start_order();
  const auto first = std::find_if(order.begin(), order.end(), [&](const std::string& role) {
    return spec.FindRole(role)->replicas > 0;
  });
  int members = 0;
  for (const RoleSpec* role : pass.job().roles()) {
    const auto place = std::find(order.begin(), order.end(), role->name);
    if (place != order.end() && place != first) continue;
    for (int i = 0; i < role->replicas; ++i) {
      if (!pass.HasSucceeded({role->name, i})) ++members;
    }
  }
  return std::max(1, members);
}

Json GroupSpec(Pass& pass) {
  const auto policy = [&](const char* name) -> const Json* {
    const Json* policy = k8s::Find(pass.job().object(), "/spec/runPolicy/schedulingPolicy");
    return policy == nullptr ? nullptr : k8s::Find(*policy, absl::StrCat("/", name));
  };
  const int members = Members(pass);
  Json spec = {{"minMember", members}};
  if (const Json* least = policy("minAvailable"); least != nullptr && *least > 0) {
    spec["minMember"] = std::min(members, least->get<int>());
  }
  const auto take = [&](const char* from, const char* to) {
    if (const Json* value = policy(from)) spec[to] = *value;
  };
  take("minResources", "minResources");
  if (pass.job().options().gang == GangScheduler::kVolcano) {
    take("queue", "queue");
    take("priorityClass", "priorityClassName");
  } else {
    take("scheduleTimeoutSeconds", "scheduleTimeoutSeconds");
  }
  return spec;
}

// The merge patch that makes the fields of `wanted` as they are there; null when they are. What a
// scheduler has added by itself stays.
Json ChangeOf(const Json& there, const Json& wanted) {
  Json patch;
  for (const auto& [name, value] : wanted.items()) {
    const Json* old = k8s::Find(there, absl::StrCat("/spec/", name));
    if (old != nullptr && *old == value) continue;
    patch[name] = value;
    if (old == nullptr || !old->is_object()) continue;
    for (const auto& [member, unused] : old->items()) {
      if (!value.contains(member)) patch[name][member] = nullptr;
    }
  }
  return patch;
}

}  // namespace

absl::StatusOr<GangScheduler> GangSchedulerFromName(absl::string_view name) {
  if (name == "none") return GangScheduler::kNone;
  if (name == "volcano") return GangScheduler::kVolcano;
  if (name == "scheduler-plugins") return GangScheduler::kSchedulerPlugins;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is no gang scheduler; expected none, volcano or scheduler-plugins"));
}

const k8s::ResourceKind& PodGroupKind(GangScheduler scheduler) {
  return scheduler == GangScheduler::kVolcano ? kVolcanoGroups : kPluginGroups;
}

bool KeepGang(Pass& pass) {
  const TfJob& job = pass.job();
  const GangScheduler scheduler = job.options().gang;
  if (scheduler == GangScheduler::kNone) return true;
  const Json* there = pass.pod_group();
  const Json spec = GroupSpec(pass);
  if (there == nullptr) {
    if (pass.IsUnderWay(Kind::kPodGroup, job.GroupName())) return false;
    const k8s::ResourceKind& kind = PodGroupKind(scheduler);
    pass.Do(Create{Kind::kPodGroup,
                   {{"apiVersion", kind.ApiVersion()},
                    {"kind", kind.kind},
                    {"metadata",
                     {{"name", job.GroupName()},
                      {"namespace", job.kubernetes_namespace()},
                      {"labels", job.Labels()},
                      {"ownerReferences", Json::array({job.OwnerReference()})}}},
                    {"spec", spec}}});
    return false;
  }
  if (k8s::ControllerOf(*there) != job.uid()) {
    pass.Tell(true, "FailedCreatePodGroup",
              absl::StrCat(job.GroupName(),
                           " is there already and belongs to another; delete or rename one"));
    return false;
  }
  if (k8s::IsBeingDeleted(*there)) return false;
  if (Json patch = ChangeOf(*there, spec); !patch.is_null()) {
    pass.Do(Change{Kind::kPodGroup,
                   job.GroupName(),
                   {{"metadata", {{"uid", k8s::UidOf(*there)}}}, {"spec", std::move(patch)}}});
  }
  return true;
}

void RemoveGang(Pass& pass) {
  const Json* there = pass.pod_group();
  if (there == nullptr || k8s::ControllerOf(*there) != pass.job().uid()) return;
  pass.Remove(Kind::kPodGroup, Child{there});
}

void JoinGang(const TfJob& job, Json& pod) {
  const TfJobOptions& options = job.options();
  if (options.gang == GangScheduler::kNone) return;
  const bool volcano = options.gang == GangScheduler::kVolcano;
  if (volcano) {
    pod["metadata"]["annotations"][kVolcanoGroup] = job.GroupName();
  } else {
    pod["metadata"]["labels"][kPluginGroup] = job.GroupName();
  }
  if (pod["spec"].contains("schedulerName")) return;  // the user knows better
  const char* usual = volcano ? "volcano" : "scheduler-plugins-scheduler";
  pod["spec"]["schedulerName"] =
      options.gang_scheduler_name.empty() ? usual : options.gang_scheduler_name;
}

}  // namespace muster::controller
