#include "job/format/tfjob_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/text/suggest.h"
#include "codec/yaml.h"
#include "job/enum_names.h"
#include "job/format/pod_fields.h"
#include "job/format/tfjob_format.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;
using Json = nlohmann::json;

// Returns true if both are the same words: tfReplicaType, TfReplicaType, tf_replica_type.
bool SameWords(absl::string_view a, absl::string_view b) {
  return absl::EqualsIgnoreCase(absl::StrReplaceAll(a, {{"_", ""}}), b);
}

// Parses the JSON or YAML of an annotation. Adds its mistakes at the place of the annotation.
std::optional<Node> ParseAnnotation(const Node& annotation, const char* key,
                                    Diagnostics& diagnostics) {
  Diagnostics inner(key);
  std::vector<Node> documents = codec::ParseYaml(annotation.scalar, {}, inner);
  if (inner.empty() && documents.size() == 1) return std::move(documents.front());
  diagnostics.Add(annotation.mark, absl::StrCat("the annotation ", key, " is not valid JSON"));
  return std::nullopt;
}

}  // namespace

Node WithCanonicalKeys(const Node& node, const std::vector<std::string>& names,
                       Diagnostics& diagnostics) {
  Node result = node;
  std::set<std::string> seen;
  for (auto& [key, value] : result.entries) {
    for (const std::string& name : names) {
      if (SameWords(key.name, name)) key.name = name;
    }
    if (!seen.insert(key.name).second) {
      diagnostics.Add(key.mark, absl::StrCat("the key ", codec::Quoted(key.name),
                                             " appears twice, in different spellings"));
    }
  }
  return result;
}

TfJobReader::TfJobReader(const Node& document, JobFormat format, Diagnostics& diagnostics)
    : manifest_(document, "the TFJob", diagnostics), diagnostics_(diagnostics) {
  spec_.format = format;
  spec_.kubernetes_namespace = "default";
  for (const char* key : {"apiVersion", "kind", "status"}) manifest_.Find(key);
  ReadMetadata();
  body_ = manifest_.Require("spec", "the job itself");
  manifest_.Finish();
}

void TfJobReader::Keep(const char* key, const Node* node) {
  if (node != nullptr && node->kind != Node::Kind::kNull) spec_.kubernetes[key] = ToJson(*node);
}

void TfJobReader::ReadTensorboard(const Node& node) {
  const Node canonical = WithCanonicalKeys(
      node, {"logDir", "volumes", "volumeMounts", "serviceType", "image"}, diagnostics_);
  Keep("tensorboard", &canonical);
  MapReader reader(canonical, "tensorboard", diagnostics_);
  if (reader.Require("logDir", "the folder that TensorBoard shows") != nullptr) {
    reader.String("logDir");
  }
  CheckVolumes(reader.Find("volumes"), "volumes", "Volume");
  CheckVolumes(reader.Find("volumeMounts"), "volumeMounts", "VolumeMount");
  if (const Node* type = reader.Find("serviceType"); type != nullptr && !type->scalar.empty()) {
    reader.Choice("serviceType", {"ClusterIP", "NodePort", "LoadBalancer"});
  }
  reader.String("image");
  reader.Finish();
}

void TfJobReader::CheckVolumes(const Node* list, const char* key, const char* type) {
  if (list == nullptr || list->kind == Node::Kind::kNull) return;
  if (list->kind != Node::Kind::kSequence) {
    diagnostics_.Add(list->mark, absl::StrCat("'", key, "' of tensorboard must be a list, not ",
                                              Describe(*list)));
  }
  for (const Node& item : list->items) {
    CheckPodFields(item, type, absl::StrCat("'", key, "' of tensorboard"), diagnostics_);
  }
}

void TfJobReader::ReadRuntimeId(const Node* node) {
  // A label has at most 63 characters: 40 of the job, 6 of "worker", 10 of the id, 4 of an index
  // below kMaxReplicas, and 3 hyphens.
  constexpr size_t kMaxIdLength = 10;
  if (node == nullptr || node->kind == Node::Kind::kNull) return;
  const std::string& id = node->scalar;
  const auto allowed = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  if (!id.empty() && id.size() <= kMaxIdLength && std::all_of(id.begin(), id.end(), allowed)) {
    spec_.kubernetes["runtimeId"] = id;
    return;
  }
  diagnostics_.Add(node->mark, absl::StrCat("the RuntimeId ", codec::Quoted(id),
                                            " is not valid; expected at most ", kMaxIdLength,
                                            " lower-case letters and digits, such as 5oz2"));
}

void TfJobReader::SetChief(const cluster::TaskId& task, codec::Mark mark) {
  const RoleSpec* role = spec_.FindRole(task.role);
  if (role == nullptr || task.index >= role->replicas) {
    diagnostics_.Add(
        mark, absl::StrCat("the chief is ", task.ToString(), ", which is not a task of the job"));
  } else if (task != ChiefTask(spec_)) {
    spec_.policies.chief = task;
  }
}

void TfJobReader::ReadPolicies() {
  if (annotations_ == nullptr || annotations_->kind != Node::Kind::kMap) return;
  MapReader reader(*annotations_, "the annotations", diagnostics_);
  if (const auto scope = reader.Choice(kRestartScopeAnnotation, NamesOf<RestartScope>())) {
    spec_.policies.restart_scope = *FromName<RestartScope>(*scope);
  }
  if (const auto update = reader.Choice(kUpdateAnnotation, {"recreate", "rolling", "never"})) {
    spec_.kubernetes["update"] = *update;
  }
  ReadStartOrder(reader);
  ReadOldFields(reader);
  ReportMisspelledAnnotations();
}

void TfJobReader::ReadOldFields(MapReader& reader) {
  if (const Node* id = reader.Find(kRuntimeIdAnnotation)) ReadRuntimeId(id);
  if (const auto text = reader.String(kChiefAnnotation)) {
    const codec::Mark mark = reader.Find(kChiefAnnotation)->mark;
    const auto chief = cluster::TaskId::Parse(*text);
    if (chief.ok()) {
      SetChief(*chief, mark);
    } else {
      diagnostics_.Add(
          mark, absl::StrCat("the annotation ", kChiefAnnotation, ": ", chief.status().message()));
    }
  }
  if (const Node* section = reader.Find(kTensorboardAnnotation)) {
    if (const auto parsed = ParseAnnotation(*section, kTensorboardAnnotation, diagnostics_)) {
      ReadTensorboard(*parsed);
    }
  }
}

void TfJobReader::ReportMisspelledAnnotations() {
  static const auto& kKnown = *new std::vector<std::string>{
      kFormatAnnotation,       kModelDirAnnotation,    kMaxRestartsAnnotation,
      kRestartScopeAnnotation, kFinishGraceAnnotation, kStartOrderAnnotation,
      kUpdateAnnotation,       kStatusAnnotation,      kChiefAnnotation,
      kTensorboardAnnotation,  kRuntimeIdAnnotation};
  for (const auto& [key, value] : annotations_->entries) {
    if (!absl::StartsWith(key.name, "muster/") ||
        std::find(kKnown.begin(), kKnown.end(), key.name) != kKnown.end()) {
      continue;
    }
    const std::string meant = base::DidYouMean(key.name, kKnown);
    if (meant.empty()) continue;  // written by another program
    diagnostics_.Add(key.mark, absl::StrCat("unknown annotation ", codec::Quoted(key.name), meant));
  }
}

void TfJobReader::ReadStartOrder(MapReader& reader) {
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
                       twice ? " twice" : ", which is not a role of the job",
                       "; expected roles in the order of their start, such as ps,worker"));
    }
    order.push_back(role);
  }
  spec_.kubernetes["startOrder"] = std::move(order);
}

// Does not call Finish(): metadata has many fields that are irrelevant for a job.
void TfJobReader::ReadMetadata() {
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

// Reads Muster's annotations and ignores all others.
void TfJobReader::ReadAnnotations(const Node& annotations) {
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

// Parses a number, which in an annotation is a string.
std::optional<int> TfJobReader::ReadCount(const codec::Key& key, const Node& value) {
  int count = 0;
  if (absl::SimpleAtoi(value.scalar, &count) && count >= 0) return count;
  diagnostics_.Add(value.mark, absl::StrCat("the annotation ", key.name,
                                            " must be a whole number, 0 or more, not ",
                                            codec::Quoted(value.scalar)));
  return std::nullopt;
}

// Service names start with the job's name and must be DNS-1035 labels, which start with a letter.
void TfJobReader::CheckName(absl::string_view name, codec::Mark mark) {
  CheckJobName(name, mark, diagnostics_);
  if (!name.empty() && absl::ascii_isdigit(name.front())) {
    diagnostics_.Add(mark, absl::StrCat("the job's name ", codec::Quoted(name),
                                        " begins with a digit; expected a letter first"));
  }
}

}  // namespace muster::job
