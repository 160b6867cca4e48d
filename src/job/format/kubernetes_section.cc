#include "job/format/kubernetes_section.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "codec/map_reader.h"
#include "job/format/pod_fields.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

nlohmann::json ReadFragments(MapReader& reader, Diagnostics& diagnostics) {
  nlohmann::json fragments = nlohmann::json::object();
  for (const char* key : {"pod", "container"}) {
    const Node* node = reader.Find(key);
    if (node == nullptr || node->kind == Node::Kind::kNull) continue;
    if (node->kind == Node::Kind::kMap) {
      fragments[key] = ToJson(*node);
      const bool pod = absl::string_view(key) == "pod";
      CheckPodFields(*node, pod ? "PodSpec" : "Container",
                     absl::StrCat("'", key, "' of ", reader.what()), diagnostics);
      continue;
    }
    diagnostics.Add(node->mark,
                    absl::StrCat("'", key, "' of ", reader.what(),
                                 " must be a map of Kubernetes' fields, not ", Describe(*node)));
  }
  return fragments;
}

}  // namespace

nlohmann::json ReadPodFragments(const Node& node, std::string what, Diagnostics& diagnostics) {
  MapReader reader(node, std::move(what), diagnostics);
  nlohmann::json fragments = ReadFragments(reader, diagnostics);
  reader.Finish();
  return fragments;
}

nlohmann::json ReadKubernetes(const Node& node, std::string& kubernetes_namespace,
                              Diagnostics& diagnostics) {
  MapReader reader(node, "kubernetes", diagnostics);
  if (const auto name = reader.String("namespace")) {
    if (!IsLabel(*name)) {
      diagnostics.Add(reader.Find("namespace")->mark,
                      absl::StrCat("the namespace ", codec::Quoted(*name),
                                   " is not valid; expected ", kNameRule));
    }
    kubernetes_namespace = *name;
  }
  nlohmann::json fragments = ReadFragments(reader, diagnostics);
  reader.Finish();
  return fragments;
}

}  // namespace muster::job
