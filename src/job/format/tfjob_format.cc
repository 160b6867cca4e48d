#include "job/format/tfjob_format.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/suggest.h"
#include "job/format/parse.h"
#include "job/format/pod_template.h"
#include "job/format/tfjob_reader.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

constexpr const char* kRoles[] = {"Chief", "Master", "PS", "Worker", "Evaluator"};
constexpr std::pair<const char*, RestartPolicy> kPolicies[] = {
    {"Never", RestartPolicy::kNever},
    {"OnFailure", RestartPolicy::kOnFailure},
    {"Always", RestartPolicy::kAlways},
    {"ExitCode", RestartPolicy::kExitCode}};
constexpr int64_t kMaxSeconds = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxLabelLength = 63;

class V1Reader : TfJobReader {
 public:
  V1Reader(const Node& document, Diagnostics& diagnostics)
      : TfJobReader(document, JobFormat::kTfJobV1, diagnostics) {}

  // `beta`: the fields of runPolicy are in `spec` itself.
  JobSpec Read(bool beta) {
    if (body_ == nullptr) return std::move(spec_);
    MapReader body(*body_, "the TFJob's spec", diagnostics_);
    if (beta) {
      ReadInlinePolicy(body);
    } else if (const Node* node = body.Find("runPolicy")) {
      ReadRunPolicy(*node);
    }
    ReadSuccessPolicy(body);
    spec_.dynamic_workers = body.Bool("enableDynamicWorker").value_or(false);
    ReadReplicaSpecs(
        body.Require("tfReplicaSpecs", "a map of Chief, Master, PS, Worker, Evaluator"));
    ReadPolicies();
    body.Finish();
    return std::move(spec_);
  }

 private:
  // Collects the fields into the runPolicy that they are in v1.
  void ReadInlinePolicy(MapReader& body) {
    Node policy{.kind = Node::Kind::kMap, .mark = body_->mark};
    const std::pair<const char*, const char*> fields[] = {
        {"cleanPodPolicy", "cleanPodPolicy"},
        {"ttlSecondsAfterFinished", "ttlSecondsAfterFinished"},
        {"ttlSecondsAfterFinishing", "ttlSecondsAfterFinished"},  // v1alpha2
        {"activeDeadlineSeconds", "activeDeadlineSeconds"},
        {"backoffLimit", "backoffLimit"}};
    for (const auto& [key, name] : fields) {
      const Node* node = body.Find(key);
      if (node == nullptr || node->kind == Node::Kind::kNull || policy.Find(name)) continue;
      policy.entries.push_back({{.name = name, .mark = node->mark}, *node});
    }
    if (policy.Find("cleanPodPolicy") == nullptr) {  // the default of v1 is None
      Node usual{.kind = Node::Kind::kScalar, .mark = body_->mark, .scalar = "Running"};
      policy.entries.push_back({{.name = "cleanPodPolicy", .mark = body_->mark}, usual});
    }
    ReadRunPolicy(policy);
  }

  void ReadRunPolicy(const Node& node) {
    Keep("runPolicy", &node);
    MapReader reader(node, "runPolicy", diagnostics_);
    reader.Choice("cleanPodPolicy", {"None", "Running", "All"});
    reader.Int("ttlSecondsAfterFinished", 0, kMaxSeconds);
    if (const auto seconds = reader.Int("activeDeadlineSeconds", 1, kMaxSeconds)) {
      spec_.policies.deadline = absl::Seconds(*seconds);
    }
    if (const auto limit = reader.Int("backoffLimit", 0, 1'000'000)) {
      spec_.policies.max_restarts = static_cast<int>(*limit);
    }
    reader.Bool("suspend");
    if (const Node* managed_by = reader.Find("managedBy");
        managed_by && !managed_by->scalar.empty()) {
      reader.Choice("managedBy", {"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"});
    }
    if (const Node* scheduling = reader.Find("schedulingPolicy")) ReadSchedulingPolicy(*scheduling);
    reader.Finish();
  }

  void ReadSchedulingPolicy(const Node& node) {
    MapReader reader(node, "schedulingPolicy", diagnostics_);
    reader.Int("minAvailable", 0, kMaxTasks);
    reader.StringMap("minResources");
    reader.String("queue");
    reader.String("priorityClass");
    reader.Int("scheduleTimeoutSeconds", 0, kMaxSeconds);
    reader.Finish();
  }

  void ReadSuccessPolicy(MapReader& body) {
    const Node* node = body.Find("successPolicy");
    if (node == nullptr || (node->kind == Node::Kind::kScalar && node->scalar.empty())) return;
    if (body.Choice("successPolicy", {"AllWorkers"})) {
      spec_.policies.success = SuccessPolicy::kAllWorkers;
    }
  }

  void ReadReplicaSpecs(const Node* node) {
    if (node == nullptr) return;
    places_.all = node->mark;
    if (node->kind != Node::Kind::kMap) {
      diagnostics_.Add(node->mark, absl::StrCat("'tfReplicaSpecs' must be a map of roles, not ",
                                                Describe(*node)));
      return;
    }
    for (const auto& [key, replica] : node->entries) ReadReplica(key, replica);
    CheckRoles(spec_, places_, diagnostics_);
    CheckPodNames();
  }

  // The names of pods and services, <job>-<role>-<index>, must be DNS labels.
  void CheckPodNames() {
    for (size_t i = 0; i < spec_.roles.size(); ++i) {
      const RoleSpec& role = spec_.roles[i];
      const std::string last = absl::StrCat(spec_.name, "-", role.name, "-", role.replicas - 1);
      if (role.replicas == 0 || last.size() <= kMaxLabelLength) continue;
      diagnostics_.Add(
          places_.each[i],
          absl::StrCat("the pod's name '", last, "' has ", last.size(), " characters; expected ",
                       kMaxLabelLength, " at most: give the job a shorter name"));
    }
  }

  void ReadReplica(const codec::Key& key, const Node& node) {
    RoleSpec role;
    role.name = absl::AsciiStrToLower(key.name);
    if (TfJobRoleName(role.name).empty()) {
      const std::vector<std::string> roles(std::begin(kRoles), std::end(kRoles));
      diagnostics_.Add(key.mark,
                       absl::StrCat("unknown role ", codec::Quoted(key.name),
                                    " in tfReplicaSpecs; expected one of: ",
                                    absl::StrJoin(roles, ", "), base::DidYouMean(key.name, roles)));
      return;
    }
    if (spec_.FindRole(role.name) != nullptr) {
      diagnostics_.Add(key.mark, absl::StrCat("the role ", codec::Quoted(key.name),
                                              " appears twice, in different case"));
      return;
    }
    ReadReplicaFields(node, codec::Quoted(key.name), role);
    places_.each.push_back(key.mark);
    spec_.roles.push_back(std::move(role));
  }

  void ReadReplicaFields(const Node& node, const std::string& name, RoleSpec& role) {
    MapReader reader(node, absl::StrCat("the role ", name), diagnostics_);
    role.replicas = static_cast<int>(reader.Int("replicas", 0, kMaxReplicas).value_or(1));
    std::vector<std::string> names;
    names.reserve(std::size(kPolicies));
    for (const auto& [word, policy] : kPolicies) names.emplace_back(word);
    const std::string chosen = reader.Choice("restartPolicy", names).value_or("Never");
    for (const auto& [word, policy] : kPolicies) {
      if (word == chosen) role.restart = policy;
    }
    if (const Node* pod = reader.Require("template", "a pod template")) {
      ReadPodTemplate(*pod, absl::StrCat("the template of ", name), role, diagnostics_);
      WarnOfRestartPolicy(*pod, name);
    }
    reader.Finish();
  }

  void WarnOfRestartPolicy(const Node& pod, const std::string& name) {
    const Node* spec = pod.Find("spec");
    const Node* policy = spec == nullptr ? nullptr : spec->Find("restartPolicy");
    if (policy == nullptr) return;
    diagnostics_.Warn(policy->mark, absl::StrCat("has no effect; the restartPolicy of the role ",
                                                 name, " applies"));
  }
};

}  // namespace

std::string TfJobRoleName(absl::string_view role) {
  for (const char* name : kRoles) {
    if (absl::AsciiStrToLower(name) == role) return name;
  }
  return "";
}

std::string TfJobPolicyName(RestartPolicy policy) {
  for (const auto& [name, known] : kPolicies) {
    if (known == policy) return name;
  }
  return "";
}

JobSpec ReadTfJobV1(const Node& document, Diagnostics& diagnostics) {
  return V1Reader(document, diagnostics).Read(/*beta=*/false);
}

JobSpec ReadTfJobV1Beta(const Node& document, Diagnostics& diagnostics) {
  return V1Reader(document, diagnostics).Read(/*beta=*/true);
}

}  // namespace muster::job
