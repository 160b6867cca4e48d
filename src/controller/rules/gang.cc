#include "controller/rules/gang.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "k8s/quantity.h"

namespace muster::controller {
namespace {

constexpr k8s::ResourceKind kVolcanoGroups{"scheduling.volcano.sh", "v1beta1", "podgroups",
                                           "PodGroup"};
constexpr k8s::ResourceKind kPluginGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups",
                                          "PodGroup"};
constexpr char kVolcanoGroup[] = "scheduling.k8s.io/group-name";
constexpr char kVolcanoTask[] = "volcano.sh/task-spec";
constexpr char kPluginGroup[] = "scheduling.x-k8s.io/pod-group";

// Returns the templates of the tasks that must run together: all that have not succeeded, except
// those that a start order delays until others run.
std::vector<const Json*> Members(ReconcileContext& context) {
  const job::JobSpec& spec = context.job().spec();
  const std::vector<std::string> order = context.job().start_order();
  const auto first = std::find_if(order.begin(), order.end(), [&](const std::string& role) {
    return spec.FindRole(role)->replicas > 0;
  });
  std::vector<const Json*> members;
  for (const job::RoleSpec* role : context.job().roles()) {
    const auto place = std::find(order.begin(), order.end(), role->name);
    if (place != order.end() && place != first) continue;
    for (int i = 0; i < role->replicas; ++i) {
      if (!context.HasSucceeded({role->name, i})) members.push_back(&role->pod);
    }
  }
  return members;
}

// Adds the resource requests of a container. A limit without a request counts as the request, as
// the API server defaults it.
void AddRequests(const Json& container, std::map<std::string, k8s::Quantity>& sums) {
  const Json& requests = ObjectAt(container, "/resources/requests");
  const auto add = [&sums](const std::string& name, const Json& value) {
    if (const auto quantity = k8s::Quantity::Of(value)) sums[name] += *quantity;
  };
  for (const auto& [name, value] : requests.items()) add(name, value);
  for (const auto& [name, value] : ObjectAt(container, "/resources/limits").items()) {
    if (!requests.contains(name)) add(name, value);
  }
}

// Returns the sum of the requests of the first `count` members, in the order of the roles.
Json MinResources(const std::vector<const Json*>& members, size_t count) {
  std::map<std::string, k8s::Quantity> sums;
  for (size_t i = 0; i < std::min(count, members.size()); ++i) {
    const Json* containers = k8s::Find(*members[i], "/spec/containers");
    if (containers == nullptr || !containers->is_array()) continue;
    for (const Json& container : *containers) AddRequests(container, sums);
  }
  Json resources = Json::object();
  for (const auto& [name, sum] : sums) resources[name] = sum.ToString();
  return resources;
}

Json GroupSpec(ReconcileContext& context) {
  const auto policy = [&](const char* name) -> const Json* {
    const Json* policy = k8s::Find(context.job().object(), "/spec/runPolicy/schedulingPolicy");
    return policy == nullptr ? nullptr : k8s::Find(*policy, absl::StrCat("/", name));
  };
  const std::vector<const Json*> members = Members(context);
  int least = std::max(1, static_cast<int>(members.size()));
  const Json* wanted = policy("minAvailable");
  if (wanted != nullptr && wanted->is_number_integer() && *wanted > 0) {
    least = static_cast<int>(std::min<int64_t>(least, wanted->get<int64_t>()));
  }
  Json spec = {{"minMember", least},
               {"minResources", MinResources(members, static_cast<size_t>(least))}};
  const auto take = [&](const char* from, const char* to) {
    if (const Json* value = policy(from)) spec[to] = *value;
  };
  take("minResources", "minResources");
  if (context.job().options().gang == GangScheduler::kVolcano) {
    if (context.pod_group() == nullptr)
      spec["queue"] = "default";  // on creation only: the scheduler may change it
    take("queue", "queue");
    take("priorityClass", "priorityClassName");
  } else {
    take("scheduleTimeoutSeconds", "scheduleTimeoutSeconds");
  }
  return spec;
}

// Returns the merge patch that sets the fields of `wanted` in the spec of `there`, or null if they
// are equal. Fields that the scheduler has added stay.
Json ChangeOf(const Json& there, const Json& wanted) {
  Json patch;
  for (const auto& [name, value] : wanted.items()) {
    const Json* old = k8s::Find(there, absl::StrCat("/spec/", name));
    if (old != nullptr && *old == value) continue;
    patch[name] = value;
    if (old == nullptr || !old->is_object()) continue;
    for (const auto& [member, unused] : old->items()) {
      if (!value.contains(member)) patch[name][member] = nullptr;  // a merge patch removes nulls
    }
  }
  return patch;
}

// Returns the PodGroup to create. It has the job's annotations, since schedulers read theirs there.
Json GroupOf(const TfJob& job, const Json& spec) {
  const k8s::ResourceKind& kind = PodGroupKind(job.options().gang);
  Json metadata = {{"name", job.GroupName()},
                   {"namespace", job.kubernetes_namespace()},
                   {"labels", job.Labels()},
                   {"ownerReferences", Json::array({job.OwnerReference()})}};
  for (const auto& [name, value] : ObjectAt(job.object(), "/metadata/annotations").items()) {
    if (absl::StartsWith(name, "muster/") || absl::StartsWith(name, "kubectl.")) continue;
    metadata["annotations"][name] = value;
  }
  return {{"apiVersion", kind.ApiVersion()},
          {"kind", kind.kind},
          {"metadata", std::move(metadata)},
          {"spec", spec}};
}

// Volcano admits a group when its queue has room for minResources. Pods must not exist before that:
// they would be pending instead of the group. The scheduler plugins have no such phase.
bool IsAdmitted(GangScheduler scheduler, const Json& group) {
  if (scheduler != GangScheduler::kVolcano) return true;
  const std::string phase = k8s::TextAt(group, "/status/phase");
  return !phase.empty() && phase != "Pending";
}

}  // namespace

absl::StatusOr<GangScheduler> GangSchedulerFromName(absl::string_view name) {
  if (name == "none") return GangScheduler::kNone;
  if (name == "volcano") return GangScheduler::kVolcano;
  if (name == "scheduler-plugins") return GangScheduler::kSchedulerPlugins;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is not a gang scheduler; expected none, volcano or scheduler-plugins"));
}

const k8s::ResourceKind& PodGroupKind(GangScheduler scheduler) {
  return scheduler == GangScheduler::kVolcano ? kVolcanoGroups : kPluginGroups;
}

const k8s::ResourceKind& ResourceOf(Kind kind, GangScheduler scheduler) {
  switch (kind) {
    case Kind::kPod:
      return k8s::kPods;
    case Kind::kService:
      return k8s::kServices;
    case Kind::kPodGroup:
      return PodGroupKind(scheduler);
    case Kind::kConfigMap:
      break;
  }
  return k8s::kConfigMaps;
}

bool EnsurePodGroup(ReconcileContext& context) {
  const TfJob& job = context.job();
  const GangScheduler scheduler = job.options().gang;
  if (scheduler == GangScheduler::kNone) return true;
  const Json* there = context.pod_group();
  const Json spec = GroupSpec(context);
  if (there == nullptr) {
    if (context.IsCreationPending(Kind::kPodGroup, job.GroupName()) ||
        !context.MayRetryCreate(Kind::kPodGroup, job.GroupName())) {
      return false;
    }
    context.AddAction(
        Create{.kind = Kind::kPodGroup, .name = job.GroupName(), .object = GroupOf(job, spec)});
    return false;
  }
  if (k8s::ControllerOf(*there) != job.uid()) {
    context.RecordEvent(
        true, "FailedCreatePodGroup",
        absl::StrCat(job.GroupName(),
                     " already exists and belongs to another owner; delete or rename one of them"));
    return false;
  }
  if (k8s::IsBeingDeleted(*there)) return false;
  if (Json patch = ChangeOf(*there, spec); !patch.is_null()) {
    context.AddAction(
        Change{Kind::kPodGroup,
               job.GroupName(),
               {{"metadata", {{"uid", k8s::UidOf(*there)}}}, {"spec", std::move(patch)}}});
  }
  return IsAdmitted(scheduler, *there);
}

void RemovePodGroup(ReconcileContext& context) {
  const Json* there = context.pod_group();
  if (there == nullptr || k8s::ControllerOf(*there) != context.job().uid()) return;
  context.Remove(Kind::kPodGroup, Child{there});
}

void AddToPodGroup(const TfJob& job, const std::string& role, Json& pod) {
  const TfJobOptions& options = job.options();
  if (options.gang == GangScheduler::kNone) return;
  const bool volcano = options.gang == GangScheduler::kVolcano;
  if (volcano) {
    pod["metadata"]["annotations"][kVolcanoGroup] = job.GroupName();
    pod["metadata"]["annotations"][kVolcanoTask] = role;
  } else {
    pod["metadata"]["labels"][kPluginGroup] = job.GroupName();
  }
  if (pod["spec"].contains("schedulerName")) return;  // set by the user
  const char* usual = volcano ? "volcano" : "scheduler-plugins-scheduler";
  pod["spec"]["schedulerName"] =
      options.gang_scheduler_name.empty() ? usual : options.gang_scheduler_name;
}

}  // namespace muster::controller
