#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "job/format/parse.h"
#include "job/format/pod_template.h"
#include "job/format/tfjob_format.h"
#include "job/format/tfjob_reader.h"
#include "job/images.h"
#include "job/tf_server.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

// Returns true for a template that the original operator has stored for a default PS: it mounts the
// program of the server, and has neither that volume nor a command.
bool MountsServer(const Node& pod) {
  const Node* spec = pod.Find("spec");
  const Node* containers = spec == nullptr ? nullptr : spec->Find("containers");
  if (containers == nullptr) return false;
  return std::any_of(containers->items.begin(), containers->items.end(), [](const Node& one) {
    const Node* mounts = one.Find("volumeMounts");
    if (mounts == nullptr || one.Find("command") != nullptr) return false;
    return std::any_of(mounts->items.begin(), mounts->items.end(), [](const Node& mount) {
      const Node* path = mount.Find("mountPath");
      return path != nullptr && path->scalar == kTfServerFolder;
    });
  });
}

bool RunsTrainer(const RoleSpec& role) {
  if (role.server != Server::kNone) return false;
  if (role.command.empty()) return IsTrainerImage(role.image);
  return role.command[0].substr(role.command[0].rfind('/') + 1) == kTrainerProgram;
}

class V1Alpha1Reader : TfJobReader {
 public:
  V1Alpha1Reader(const Node& document, Diagnostics& diagnostics)
      : TfJobReader(document, JobFormat::kTfJobV1Alpha1, diagnostics) {}

  JobSpec Read() {
    if (body_ == nullptr) return std::move(spec_);
    const Node canonical =
        WithCanonicalKeys(*body_,
                          {"runtimeId", "tfImage", "replicaSpecs", "tensorboard",
                           "terminationPolicy", "cleanupPodPolicy", "schedulerName"},
                          diagnostics_);
    MapReader body(canonical, "the TfJob's spec", diagnostics_);
    if (const auto image = body.String("tfImage")) spec_.kubernetes["tfImage"] = *image;
    ReadRuntimeId(body.Find("runtimeId"));
    ReadCleanup(body);
    if (const Node* node = body.Find("tensorboard")) ReadTensorboard(*node);
    ReadReplicaSpecs(body.Require("replicaSpecs", "a list of MASTER, WORKER and PS replicas"));
    if (const Node* node = body.Find("terminationPolicy")) ReadTerminationPolicy(*node);
    if (const auto scheduler = body.String("schedulerName")) SetScheduler(*scheduler);
    ReadPolicies();
    body.Finish();
    return std::move(spec_);
  }

 private:
  void ReadCleanup(MapReader& body) {
    const Node* node = body.Find("cleanupPodPolicy");
    if (node == nullptr || node->scalar.empty()) return;
    if (const auto policy = body.Choice("cleanupPodPolicy", {"None", "Running", "All"})) {
      spec_.kubernetes["runPolicy"]["cleanPodPolicy"] = *policy;
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
    ChooseServers();
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

  // A PS is a server of Muster's unless it has a template of its own. A PS that another operator
  // has stored has both 'IsDefaultPS: true' and the template that this operator added.
  void ReadReplicaTemplate(MapReader& reader, const std::string& type, RoleSpec& role) {
    const Node* pod = reader.Find("template");
    const bool has_template = pod != nullptr && pod->kind != Node::Kind::kNull;
    const bool default_ps = reader.Bool("isDefaultPS").value_or(!has_template && type == "PS");
    if (default_ps && type != "PS") {
      diagnostics_.Add(reader.mark(), absl::StrCat("'IsDefaultPS' applies to a PS, not to ", type));
    } else if (!default_ps && !has_template) {
      diagnostics_.Add(reader.mark(), absl::StrCat("the ", type,
                                                   " lacks 'template'; expected a pod "
                                                   "template"));
    } else if (has_template) {
      ReadPodTemplate(*pod, absl::StrCat("the template of ", type), role, diagnostics_);
    }
    if (type == "PS" && (default_ps || (has_template && MountsServer(*pod)))) {
      role.server = Server::kTensorFlow;
      role.command.clear();
    }
  }

  // Chooses the server of a default PS: that of the trainer if the job trains with it.
  void ChooseServers() {
    const auto trains = std::find_if(spec_.roles.begin(), spec_.roles.end(), RunsTrainer);
    const std::string tf_image =
        spec_.kubernetes.is_null() ? "" : spec_.kubernetes.value("tfImage", "");
    for (RoleSpec& role : spec_.roles) {
      if (role.server != Server::kTensorFlow) continue;
      if (trains != spec_.roles.end()) {
        role.server = Server::kNone;  // the built-in trainer, which serves as a ps
        role.pod = nullptr;
        role.image = trains->image;
      } else if (role.image.empty()) {
        role.image = tf_image.empty() ? kTensorflowImage : tf_image;
      }
    }
  }

  // Reads the task whose exit decides the outcome of the job; the default is the MASTER.
  void ReadTerminationPolicy(const Node& node) {
    const Node canonical = WithCanonicalKeys(node, {"chief"}, diagnostics_);
    MapReader policy(canonical, "terminationPolicy", diagnostics_);
    const Node* chief_node = policy.Find("chief");
    policy.Finish();
    if (chief_node == nullptr) return;
    const Node named =
        WithCanonicalKeys(*chief_node, {"replicaName", "replicaIndex"}, diagnostics_);
    MapReader chief(named, "'chief' of terminationPolicy", diagnostics_);
    const std::string name = chief.Choice("replicaName", {"MASTER", "WORKER"}).value_or("MASTER");
    const int64_t index = chief.Int("replicaIndex", 0, kMaxReplicas).value_or(0);
    chief.Finish();
    SetChief({absl::AsciiStrToLower(name), static_cast<int>(index)}, chief_node->mark);
  }

  void SetScheduler(const std::string& name) {
    if (!diagnostics_.empty()) return;  // a template may not be a map
    for (RoleSpec& role : spec_.roles) {
      nlohmann::json& pod = role.pod.is_null() ? role.kubernetes["pod"] : role.pod["spec"];
      if (!pod.contains("schedulerName")) pod["schedulerName"] = name;
    }
  }
};

}  // namespace

JobSpec ReadTfJobV1Alpha1(const Node& document, Diagnostics& diagnostics) {
  return V1Alpha1Reader(document, diagnostics).Read();
}

}  // namespace muster::job
