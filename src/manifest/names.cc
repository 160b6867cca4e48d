#include "manifest/names.h"

#include "absl/strings/str_cat.h"
#include "job/pod_template.h"

namespace muster::manifest {
namespace {

constexpr int kTaskPort = 2222;  // TensorFlow's conventional port

}  // namespace

bool IsTfJob(const JobSpec& spec) {
  switch (spec.format) {
    case JobFormat::kTfJobV1:
    case JobFormat::kTfJobV1Alpha1:
      return true;
    case JobFormat::kNative:
      return !spec.roles.empty() && !spec.roles[0].pod.is_null();
    case JobFormat::kRenderedCluster:
      return false;
  }
  return false;
}

std::string TaskName(const JobSpec& spec, const TaskId& task) {
  const std::string own = absl::StrCat(task.role, "-", task.index);
  return spec.format == JobFormat::kRenderedCluster ? own : absl::StrCat(spec.name, "-", own);
}

int PortOf(const RoleSpec& role) { return role.port.value_or(kTaskPort); }

absl::string_view PortName(const JobSpec& spec) {
  if (spec.format == JobFormat::kRenderedCluster) return "grpc-server";
  return IsTfJob(spec) ? kTfJobPortName : "muster";
}

ClusterSpec Addresses(const JobSpec& spec, absl::string_view kubernetes_namespace,
                      absl::string_view domain) {
  ClusterSpec cluster;
  for (const RoleSpec& role : spec.roles) {
    for (int i = 0; i < role.replicas; ++i) {
      const TaskId task{role.name, i};
      cluster.Set(task, absl::StrCat(TaskName(spec, task), ".", kubernetes_namespace, ".svc",
                                     domain.empty() ? "" : ".", domain, ":", PortOf(role)));
    }
  }
  return cluster;
}

std::map<std::string, std::string> LabelsOf(const JobSpec& spec, const TaskId& task) {
  const std::string index = absl::StrCat(task.index);
  std::map<std::string, std::string> labels = {
      {kJobLabel, spec.name}, {kRoleLabel, task.role}, {kIndexLabel, index}};
  if (spec.format == JobFormat::kRenderedCluster) {
    labels["job"] = task.role;
    labels["task"] = index;
  }
  return labels;
}

}  // namespace muster::manifest
