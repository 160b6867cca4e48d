#include "manifest/names.h"

#include "absl/strings/str_cat.h"
#include "job/format/pod_template.h"

namespace muster::manifest {
namespace {

constexpr int kTaskPort = 2222;  // TensorFlow's conventional port

}  // namespace

bool IsTfJob(const job::JobSpec& spec) {
  switch (spec.format) {
    case job::JobFormat::kTfJobV1:
    case job::JobFormat::kTfJobV1Alpha1:
      return true;
    case job::JobFormat::kNative:
      return !spec.roles.empty() && !spec.roles[0].pod.is_null();
    case job::JobFormat::kRenderedCluster:
      return false;
  }
  return false;
}

std::string TaskName(const job::JobSpec& spec, const cluster::TaskId& task) {
  const std::string own = absl::StrCat(task.role, "-", task.index);
  if (spec.format == job::JobFormat::kRenderedCluster) return own;
  const std::string id = k8s::TextAt(spec.kubernetes, "/runtimeId");
  if (id.empty()) return absl::StrCat(spec.name, "-", own);
  return absl::StrCat(spec.name.substr(0, kNamePrefix), "-", task.role, "-", id, "-", task.index);
}

int PortOf(const job::RoleSpec& role) { return role.port.value_or(kTaskPort); }

absl::string_view PortName(const job::JobSpec& spec) {
  if (spec.format == job::JobFormat::kRenderedCluster) return "grpc-server";
  return IsTfJob(spec) ? job::kTfJobPortName : "muster";
}

cluster::ClusterSpec Addresses(const job::JobSpec& spec, absl::string_view kubernetes_namespace,
                               absl::string_view domain) {
  cluster::ClusterSpec cluster;
  for (const job::RoleSpec& role : spec.roles) {
    for (int i = 0; i < role.replicas; ++i) {
      const cluster::TaskId task{role.name, i};
      cluster.Set(task, absl::StrCat(TaskName(spec, task), ".", kubernetes_namespace, ".svc",
                                     domain.empty() ? "" : ".", domain, ":", PortOf(role)));
    }
  }
  return cluster;
}

std::map<std::string, std::string> LabelsOf(const job::JobSpec& spec, const cluster::TaskId& task) {
  const std::string index = absl::StrCat(task.index);
  std::map<std::string, std::string> labels = {
      {kJobLabel, spec.name}, {kRoleLabel, task.role}, {kIndexLabel, index}};
  if (spec.format == job::JobFormat::kRenderedCluster) {
    labels["job"] = task.role;
    labels["task"] = index;
  }
  return labels;
}

}  // namespace muster::manifest
