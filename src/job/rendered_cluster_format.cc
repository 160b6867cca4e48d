#include "job/rendered_cluster_format.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codec/map_reader.h"
#include "job/job_rules.h"
#include "job/parse.h"

namespace muster {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

constexpr char kClusterType[] = "tensorflow-cluster";
constexpr char kJupyterType[] = "jupyter-service";
constexpr int kDefaultPort = 8080;

class ClusterReader {
 public:
  explicit ClusterReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    spec_.format = JobFormat::kRenderedCluster;
    spec_.name = kClusterType;  // the file has no name for the whole
  }

  JobSpec Read(const Node& document) {
    MapReader config(document, "the config", diagnostics_);
    config.Find("imports");  // where the templates were: Muster has its own
    const Node* resources = config.Require("resources", "a list of resources");
    config.Finish();
    if (resources != nullptr) {
      for (const Node& resource : resources->items) ReadResource(resource);
      CheckCluster(*resources);
    }
    return std::move(spec_);
  }

 private:
  void ReadResource(const Node& node) {
    MapReader resource(node, "a resource", diagnostics_);
    resource.Require("type", absl::StrCat(kClusterType, " or ", kJupyterType));
    const auto type = resource.Choice("type", {kClusterType, kJupyterType});
    resource.Find("name");
    const Node* properties = resource.Require("properties", "a map");
    resource.Finish();
    if (!type || properties == nullptr) return;
    int& count = *type == kClusterType ? clusters_ : notebooks_;
    if (++count > 1) {
      diagnostics_.Add(node.mark,
                       absl::StrCat("a second resource of type ", *type, "; expected one"));
    } else if (*type == kClusterType) {
      ReadCluster(*properties);
    } else {
      ReadJupyter(*properties);
    }
  }

  void ReadCluster(const Node& node) {
    MapReader cluster(node, absl::StrCat("the properties of ", kClusterType), diagnostics_);
    image_ = cluster.String("image").value_or("");
    spec_.kubernetes_namespace = cluster.String("namespace").value_or("default");
    const Node* jobs = cluster.Require("jobs", "a list such as [{name: worker, num_tasks: 2}]");
    cluster.Finish();
    if (jobs == nullptr) return;
    if (jobs->kind != Node::Kind::kSequence) {
      diagnostics_.Add(jobs->mark, absl::StrCat("'jobs' must be a list, not ", Describe(*jobs)));
      return;
    }
    has_jobs_ = true;
    places_.all = jobs->mark;
    for (const Node& job : jobs->items) ReadJob(job);
  }

  // A `job` of this file is a role of ours.
  void ReadJob(const Node& node) {
    MapReader job(node, "an entry of 'jobs'", diagnostics_);
    RoleSpec role;
    role.image = image_;
    if (job.Require("name", "the job's name, such as worker") != nullptr) {
      role.name = job.String("name").value_or("");
      if (!role.name.empty()) CheckRoleName(role.name, job.Find("name")->mark, diagnostics_);
    }
    job.Require("num_tasks", "the number of its tasks");
    role.replicas = static_cast<int>(job.Int("num_tasks", 0, kMaxReplicas).value_or(1));
    role.port = static_cast<int>(job.Int("port", 1, kLastPort).value_or(kDefaultPort));
    job.Finish();
    if (spec_.FindRole(role.name) != nullptr) {
      diagnostics_.Add(node.mark, absl::StrCat("a second entry of 'jobs' with the name ",
                                               codec::Quoted(role.name)));
      return;
    }
    places_.each.push_back(node.mark);
    spec_.roles.push_back(std::move(role));
  }

  void ReadJupyter(const Node& node) {
    MapReader jupyter(node, absl::StrCat("the properties of ", kJupyterType), diagnostics_);
    jupyter.String("namespace");
    jupyter.Require("password", "the notebook's password");
    // As it is written: a password of digits is text all the same.
    spec_.notebook = {{"password", jupyter.String("password").value_or("")}};
    jupyter.Finish();
  }

  void CheckCluster(const Node& resources) {
    if (clusters_ == 0 && diagnostics_.empty()) {
      diagnostics_.Add(resources.mark,
                       absl::StrCat("no resource of type ", kClusterType, "; expected one"));
    }
    if (!has_jobs_) return;
    CheckRoles(spec_, places_, diagnostics_);
    if (!IsChiefled()) spec_.policies.success = SuccessPolicy::kAllWorkers;
  }

  bool IsChiefled() const {
    const auto chief = ChiefTask(spec_);
    return chief && IsChiefRole(chief->role);
  }

  Diagnostics& diagnostics_;
  JobSpec spec_;
  RolePlaces places_;
  std::string image_;
  int clusters_ = 0;
  int notebooks_ = 0;
  bool has_jobs_ = false;
};

}  // namespace

bool IsRenderedCluster(const Node& document) {
  const Node* resources = document.Find("resources");
  return document.Find("imports") != nullptr ||
         (resources != nullptr && resources->kind == Node::Kind::kSequence);
}

JobSpec ReadRenderedCluster(const Node& document, Diagnostics& diagnostics) {
  return ClusterReader(diagnostics).Read(document);
}

}  // namespace muster
