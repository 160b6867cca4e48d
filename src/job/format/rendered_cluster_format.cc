#include "job/format/rendered_cluster_format.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codec/map_reader.h"
#include "job/format/parse.h"
#include "job/images.h"
#include "job/job_rules.h"

namespace muster::job {
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
    spec_.name = kClusterType;  // the file has no name for the job
    spec_.kubernetes_namespace = "default";
    // The job consists of servers. It ends when all of them have ended.
    spec_.policies.success = SuccessPolicy::kAllWorkers;
  }

  JobSpec Read(const Node& document) {
    MapReader config(document, "the config", diagnostics_);
    config.Find("imports");  // location of the templates, which Muster does not use
    const Node* resources = config.Require("resources", "a list of resources");
    config.Finish();
    if (resources != nullptr) {
      for (const Node& resource : resources->items) ReadResource(resource);
      CheckResources(*resources);
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
    spec_.kubernetes_namespace = cluster.String("namespace").value_or(spec_.kubernetes_namespace);
    if (cluster.Bool("restricted").value_or(false)) spec_.kubernetes["restricted"] = true;
    const Node* jobs = cluster.Require("jobs", "a list such as [{name: worker, num_tasks: 2}]");
    cluster.Finish();
    if (jobs == nullptr) return;
    if (jobs->kind != Node::Kind::kSequence) {
      diagnostics_.Add(jobs->mark, absl::StrCat("'jobs' must be a list, not ", Describe(*jobs)));
      return;
    }
    places_.all = jobs->mark;
    for (const Node& job : jobs->items) ReadJob(job);
    CheckRoles(spec_, places_, diagnostics_);
  }

  // A `job` of this format is a role of a JobSpec.
  void ReadJob(const Node& node) {
    MapReader job(node, "an entry of 'jobs'", diagnostics_);
    RoleSpec role;
    role.image = image_;
    role.server = image_.empty() || IsTrainerImage(image_) ? Server::kTrainer : Server::kTensorFlow;
    if (job.Require("name", "the job's name, such as worker") != nullptr) {
      role.name = ServiceName(job.String("name").value_or(""), job.Find("name")->mark);
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

  // Returns the name of the job in Kubernetes, where it begins the names of services. Any name that
  // can is allowed, whatever it means in other formats.
  std::string ServiceName(const std::string& name, codec::Mark mark) {
    std::string lower = absl::AsciiStrToLower(name);
    if (!IsLabel(lower) || !absl::ascii_islower(lower.front())) {
      diagnostics_.Add(mark,
                       absl::StrCat("the job's name ", codec::Quoted(name),
                                    " is not valid; expected a letter first, then ", kNameRule));
    } else if (lower != name) {
      diagnostics_.Warn(mark, absl::StrCat("the job ", codec::Quoted(name), " is called '", lower,
                                           "': names of services have no capital letters"));
    }
    if (absl::StrContains(lower, '-') && !image_.empty() && !IsTrainerImage(image_) &&
        !IsStockTensorflowImage(image_)) {
      diagnostics_.Warn(
          mark, absl::StrCat("the name ", codec::Quoted(name),
                             " contains '-': a server that derives its task from POD_NAME fails"));
    }
    return lower;
  }

  void ReadJupyter(const Node& node) {
    MapReader jupyter(node, absl::StrCat("the properties of ", kJupyterType), diagnostics_);
    jupyter.Require("password", "the notebook's password");
    // String() returns the text as written, so a password of digits is kept unchanged.
    spec_.notebook = {{"password", jupyter.String("password").value_or("")}};
    if (const auto ns = jupyter.String("namespace")) spec_.notebook["namespace"] = *ns;
    jupyter.Finish();
  }

  void CheckResources(const Node& resources) {
    if (clusters_ + notebooks_ == 0 && diagnostics_.empty()) {
      diagnostics_.Add(resources.mark, absl::StrCat("no resource; expected one of type ",
                                                    kClusterType, " or ", kJupyterType));
    }
    if (clusters_ > 0 || spec_.notebook.is_null()) return;
    spec_.name = kJupyterType;
    spec_.kubernetes_namespace = spec_.notebook.value("namespace", spec_.kubernetes_namespace);
  }

  Diagnostics& diagnostics_;
  JobSpec spec_;
  RolePlaces places_;
  std::string image_;
  int clusters_ = 0;
  int notebooks_ = 0;
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

}  // namespace muster::job
