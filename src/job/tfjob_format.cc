#include "job/tfjob_format.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/suggest.h"
#include "codec/map_reader.h"
#include "job/enum_names.h"
#include "job/job_rules.h"
#include "job/parse.h"
#include "job/pod_fields.h"
#include "job/pod_template.h"

namespace muster {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;
using Json = nlohmann::json;

constexpr const char* kRoles[] = {"Chief", "Master", "PS", "Worker", "Evaluator"};
constexpr std::pair<const char*, RestartPolicy> kPolicies[] = {
    {"Never", RestartPolicy::kNever},
    {"OnFailure", RestartPolicy::kOnFailure},
    {"Always", RestartPolicy::kAlways},
    {"ExitCode", RestartPolicy::kExitCode}};
constexpr int64_t kMaxSeconds = std::numeric_limits<int32_t>::max();
constexpr size_t kLongestLabel = 63;

// What both versions share: metadata, and the document's own keys.
class ManifestReader {
 public:
  ManifestReader(const Node& document, JobFormat format, Diagnostics& diagnostics)
      : manifest_(document, "the TFJob", diagnostics), diagnostics_(diagnostics) {
    spec_.format = format;
    spec_.kubernetes_namespace = "default";
    for (const char* key : {"apiVersion", "kind", "status"}) manifest_.Find(key);
    ReadMetadata();
    body_ = manifest_.Require("spec", "the job itself");
    manifest_.Finish();
  }

 protected:
  void Keep(const char* key, const Node* node) {
    if (node != nullptr && node->kind != Node::Kind::kNull) spec_.kubernetes[key] = ToJson(*node);
  }

  // What the operator is told in annotations, for which Kubeflow's CRD has no fields. Called when
  // the roles are known.
  void ReadPolicies() {
    if (annotations_ == nullptr || annotations_->kind != Node::Kind::kMap) return;
    MapReader reader(*annotations_, "the annotations", diagnostics_);
    if (const auto scope = reader.Choice(kRestartScopeAnnotation, NamesOf<RestartScope>())) {
      spec_.policies.restart_scope = *FromName<RestartScope>(*scope);
    }
    if (const auto update = reader.Choice(kUpdateAnnotation, {"recreate", "rolling", "never"})) {
      spec_.kubernetes["update"] = *update;
    }
    ReadStartOrder(reader);
    for (const auto& [key, value] : annotations_->entries) {
      const std::vector<std::string> known = {kFormatAnnotation,      kModelDirAnnotation,
                                              kMaxRestartsAnnotation, kRestartScopeAnnotation,
                                              kFinishGraceAnnotation, kStartOrderAnnotation,
                                              kUpdateAnnotation,      kStatusAnnotation};
      if (!absl::StartsWith(key.name, "muster/") ||
          std::find(known.begin(), known.end(), key.name) != known.end()) {
        continue;
      }
      const std::string meant = DidYouMean(key.name, known);
      if (meant.empty()) continue;  // another's
      diagnostics_.Add(key.mark,
                       absl::StrCat("unknown annotation ", codec::Quoted(key.name), meant));
    }
  }

  MapReader manifest_;
  Diagnostics& diagnostics_;
  const Node* body_ = nullptr;  // `spec`
  JobSpec spec_;
  RolePlaces places_;
  const Node* annotations_ = nullptr;

 private:
  void ReadStartOrder(MapReader& reader) {
    const auto text = reader.String(kStartOrderAnnotation);
    if (!text) return;
    Json order = Json::array();
    for (absl::string_view word : absl::StrSplit(*text, ',')) {
      const std::string role = absl::AsciiStrToLower(absl::StripAsciiWhitespace(word));
      const bool twice = std::find(order.begin(), order.end(), role) != order.end();
      if (twice || spec_.FindRole(role) == nullptr) {
        diagnostics_.Add(
            reader.Find(kStartOrderAnnotation)->mark,
            absl::StrCat("'", kStartOrderAnnotation, "' names ", codec::Quoted(role),
                         twice ? " twice" : ", which is no role of the job",
                         "; expected roles in the order of their start, such as ps,worker"));
      }
      order.push_back(role);
    }
    spec_.kubernetes["startOrder"] = std::move(order);
  }

  // Kubernetes keeps much more in metadata than a job needs; what is not read here is left alone.
  void ReadMetadata() {
    const Node* node = manifest_.Require("metadata", "a map with the job's name");
    if (node == nullptr) return;
    MapReader metadata(*node, "metadata", diagnostics_);
    metadata.Require("name", "the job's name");
    if (const auto name = metadata.String("name")) {
      spec_.name = *name;
      CheckName(*name, metadata.Find("name")->mark);
    }
    spec_.kubernetes_namespace = metadata.String("namespace").value_or(spec_.kubernetes_namespace);
    Keep("labels", metadata.Find("labels"));
    annotations_ = metadata.Find("annotations");
    if (annotations_ != nullptr) {
      Keep("annotations", annotations_);
      ReadAnnotations(*annotations_);
    }
  }

  // Those that are ours; anything else is anybody's.
  void ReadAnnotations(const Node& annotations) {
    for (const auto& [key, value] : annotations.entries) {
      if (key.name == kFormatAnnotation && value.scalar == kNativeFormat) {
        spec_.format = JobFormat::kNative;
      } else if (key.name == kModelDirAnnotation) {
        spec_.model_dir = value.scalar;
      } else if (key.name == kMaxRestartsAnnotation) {
        if (const auto count = ReadCount(key, value)) spec_.policies.max_restarts = *count;
      } else if (key.name == kFinishGraceAnnotation) {
        if (const auto count = ReadCount(key, value)) {
          spec_.policies.finish_grace = absl::Seconds(*count);
        }
      }
    }
  }

  // Annotations are texts.
  std::optional<int> ReadCount(const codec::Key& key, const Node& value) {
    int count = 0;
    if (absl::SimpleAtoi(value.scalar, &count) && count >= 0) return count;
    diagnostics_.Add(value.mark,
                     absl::StrCat("the annotation ", key.name, " must be a number from 0 on, not ",
                                  codec::Quoted(value.scalar)));
    return std::nullopt;
  }

  // DNS-1035: the name begins those of services, which may not begin with a digit.
  void CheckName(absl::string_view name, codec::Mark mark) {
    CheckJobName(name, mark, diagnostics_);
    if (!name.empty() && absl::ascii_isdigit(name.front())) {
      diagnostics_.Add(mark, absl::StrCat("the job's name ", codec::Quoted(name),
                                          " begins with a digit; expected a letter first"));
    }
  }
};

class V1Reader : ManifestReader {
 public:
  V1Reader(const Node& document, Diagnostics& diagnostics)
      : ManifestReader(document, JobFormat::kTfJobV1, diagnostics) {}

  JobSpec Read() {
    if (body_ == nullptr) return std::move(spec_);
    MapReader body(*body_, "the TFJob's spec", diagnostics_);
    if (const Node* node = body.Find("runPolicy")) ReadRunPolicy(*node);
    ReadSuccessPolicy(body);
    spec_.dynamic_workers = body.Bool("enableDynamicWorker").value_or(false);
    ReadReplicaSpecs(
        body.Require("tfReplicaSpecs", "a map of Chief, Master, PS, Worker, Evaluator"));
    ReadPolicies();
    body.Finish();
    return std::move(spec_);
  }

 private:
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

  // Pods and their services are called <job>-<role>-<index>, and both names are DNS labels.
  void CheckPodNames() {
    for (size_t i = 0; i < spec_.roles.size(); ++i) {
      const RoleSpec& role = spec_.roles[i];
      const std::string last = absl::StrCat(spec_.name, "-", role.name, "-", role.replicas - 1);
      if (role.replicas == 0 || last.size() <= kLongestLabel) continue;
      diagnostics_.Add(
          places_.each[i],
          absl::StrCat("the pod's name '", last, "' has ", last.size(), " characters; expected ",
                       kLongestLabel, " at most: give the job a shorter name"));
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
                                    absl::StrJoin(roles, ", "), DidYouMean(key.name, roles)));
      return;
    }
    if (spec_.FindRole(role.name) != nullptr) {
      diagnostics_.Add(key.mark, absl::StrCat("the role ", codec::Quoted(key.name),
                                              " is there twice, in different case"));
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
                                                 name, " is the one that counts"));
  }
};

// v1alpha1 was decoded without regard to the case of keys, and its documents differ in it
// (RuntimeId, runtimeId). `names` are the spellings that the reader below asks for.
Node WithCanonicalKeys(const Node& node, const std::vector<std::string>& names,
                       Diagnostics& diagnostics) {
  Node result = node;
  std::set<std::string> seen;
  for (auto& [key, value] : result.entries) {
    for (const std::string& name : names) {
      if (absl::EqualsIgnoreCase(key.name, name)) key.name = name;
    }
    if (!seen.insert(key.name).second) {
      diagnostics.Add(key.mark, absl::StrCat("the key ", codec::Quoted(key.name),
                                             " is there twice, in different case"));
    }
  }
  return result;
}

class V1Alpha1Reader : ManifestReader {
 public:
  V1Alpha1Reader(const Node& document, Diagnostics& diagnostics)
      : ManifestReader(document, JobFormat::kTfJobV1Alpha1, diagnostics) {}

  JobSpec Read() {
    if (body_ == nullptr) return std::move(spec_);
    const Node canonical = WithCanonicalKeys(
        *body_, {"runtimeId", "tfImage", "replicaSpecs", "tensorboard", "terminationPolicy"},
        diagnostics_);
    MapReader body(canonical, "the TfJob's spec", diagnostics_);
    for (const char* key : {"runtimeId", "tfImage"}) {
      if (const auto text = body.String(key)) spec_.kubernetes[key] = *text;
    }
    CheckRuntimeId(body.Find("runtimeId"));
    if (const Node* node = body.Find("tensorboard")) ReadTensorboard(*node);
    ReadReplicaSpecs(body.Require("replicaSpecs", "a list of MASTER, WORKER and PS replicas"));
    if (const Node* node = body.Find("terminationPolicy")) ReadTerminationPolicy(*node);
    ReadPolicies();
    body.Finish();
    return std::move(spec_);
  }

 private:
  // It is part of names that are DNS labels: {job[:40]}-{type}-{RuntimeId}-{index}.
  void CheckRuntimeId(const Node* node) {
    constexpr size_t kLongestId = 10;
    if (node == nullptr || node->kind == Node::Kind::kNull) return;
    const std::string& id = node->scalar;
    const auto allowed = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
    if (!id.empty() && id.size() <= kLongestId && std::all_of(id.begin(), id.end(), allowed)) {
      return;
    }
    diagnostics_.Add(node->mark, absl::StrCat("the RuntimeId ", codec::Quoted(id),
                                              " is not valid; expected at most ", kLongestId,
                                              " lower-case letters and digits, such as 5oz2"));
  }

  void ReadTensorboard(const Node& node) {
    Keep("tensorboard", &node);
    MapReader reader(node, "tensorboard", diagnostics_);
    if (reader.Require("logDir", "the folder that TensorBoard shows") != nullptr) {
      reader.String("logDir");
    }
    CheckVolumes(reader.Find("volumes"), "volumes", "Volume");
    CheckVolumes(reader.Find("volumeMounts"), "volumeMounts", "VolumeMount");
    reader.Choice("serviceType", {"ClusterIP", "NodePort", "LoadBalancer"});
    reader.Finish();
  }

  void CheckVolumes(const Node* list, const char* key, const char* type) {
    if (list == nullptr || list->kind == Node::Kind::kNull) return;
    if (list->kind != Node::Kind::kSequence) {
      diagnostics_.Add(list->mark, absl::StrCat("'", key, "' of tensorboard must be a list, not ",
                                                Describe(*list)));
    }
    for (const Node& item : list->items) {
      CheckPodFields(item, type, absl::StrCat("'", key, "' of tensorboard"), diagnostics_);
    }
  }

  void ReadReplicaSpecs(const Node* node) {
    if (node == nullptr) return;
    places_.all = node->mark;
    if (node->kind != Node::Kind::kSequence) {
      diagnostics_.Add(node->mark,
                       absl::StrCat("'replicaSpecs' must be a list, not ", Describe(*node)));
      return;
    }
    for (const Node& replica : node->items) ReadReplica(replica);
    CheckRoles(spec_, places_, diagnostics_);
  }

  void ReadReplica(const Node& node) {
    const Node canonical = WithCanonicalKeys(
        node, {"tfReplicaType", "replicas", "tfPort", "template", "isDefaultPS"}, diagnostics_);
    MapReader reader(canonical, "an entry of replicaSpecs", diagnostics_);
    const std::string type =
        reader.Choice("tfReplicaType", {"MASTER", "WORKER", "PS"}).value_or("MASTER");
    RoleSpec role;
    role.name = absl::AsciiStrToLower(type);
    role.replicas = static_cast<int>(reader.Int("replicas", 0, kMaxReplicas).value_or(1));
    ReadReplicaTemplate(reader, type, role);
    role.port = static_cast<int>(reader.Int("tfPort", 1, kLastPort).value_or(kTfJobPort));
    reader.Finish();
    if (spec_.FindRole(role.name) != nullptr) {
      diagnostics_.Add(node.mark, absl::StrCat("a second entry of replicaSpecs for ", type,
                                               "; expected one, with 'replicas'"));
      return;
    }
    places_.each.push_back(node.mark);
    spec_.roles.push_back(std::move(role));
  }

  // A PS without a template is one that the platform supplies: Muster's own server.
  void ReadReplicaTemplate(MapReader& reader, const std::string& type, RoleSpec& role) {
    const Node* pod = reader.Find("template");
    const bool has_template = pod != nullptr && pod->kind != Node::Kind::kNull;
    const bool default_ps = reader.Bool("isDefaultPS").value_or(!has_template && type == "PS");
    if (default_ps && type != "PS") {
      diagnostics_.Add(reader.mark(), absl::StrCat("'IsDefaultPS' is for a PS, not for ", type));
    } else if (default_ps && has_template) {
      diagnostics_.Add(pod->mark,
                       "a PS with 'IsDefaultPS: true' has no template; remove one of the two");
    } else if (!default_ps && !has_template) {
      diagnostics_.Add(reader.mark(), absl::StrCat("the ", type,
                                                   " lacks 'template'; expected a pod "
                                                   "template"));
    } else if (has_template) {
      ReadPodTemplate(*pod, absl::StrCat("the template of ", type), role, diagnostics_);
    }
  }

  // The task whose end is the job's: the MASTER unless it says otherwise.
  void ReadTerminationPolicy(const Node& node) {
    MapReader policy(node, "terminationPolicy", diagnostics_);
    const Node* chief_node = policy.Find("chief");
    policy.Finish();
    if (chief_node == nullptr) return;
    MapReader chief(*chief_node, "'chief' of terminationPolicy", diagnostics_);
    const std::string name = chief.Choice("replicaName", {"MASTER", "WORKER"}).value_or("MASTER");
    const int64_t index = chief.Int("replicaIndex", 0, kMaxReplicas).value_or(0);
    chief.Finish();
    const TaskId named{absl::AsciiStrToLower(name), static_cast<int>(index)};
    const RoleSpec* role = spec_.FindRole(named.role);
    if (role == nullptr || named.index >= role->replicas) {
      diagnostics_.Add(chief_node->mark, absl::StrCat("the chief is ", named.ToString(),
                                                      ", which is no task of the job"));
    } else if (named != ChiefTask(spec_)) {
      spec_.policies.chief = named;
    }
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
  return V1Reader(document, diagnostics).Read();
}

JobSpec ReadTfJobV1Alpha1(const Node& document, Diagnostics& diagnostics) {
  return V1Alpha1Reader(document, diagnostics).Read();
}

}  // namespace muster
