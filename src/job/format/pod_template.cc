#include "job/format/pod_template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codec/map_reader.h"
#include "job/format/pod_fields.h"
#include "job/images.h"
#include "job/job_rules.h"

namespace muster::job {
namespace {

using codec::Diagnostics;
using codec::MapReader;
using codec::Node;

constexpr std::array<std::pair<const char*, double>, 13> kSuffixes = {{{"Ki", 0x1p10},
                                                                       {"Mi", 0x1p20},
                                                                       {"Gi", 0x1p30},
                                                                       {"Ti", 0x1p40},
                                                                       {"Pi", 0x1p50},
                                                                       {"Ei", 0x1p60},
                                                                       {"m", 1e-3},
                                                                       {"k", 1e3},
                                                                       {"M", 1e6},
                                                                       {"G", 1e9},
                                                                       {"T", 1e12},
                                                                       {"P", 1e15},
                                                                       {"E", 1e18}}};

// Parses a Kubernetes quantity: "500m" is 0.5, "1Gi" is 2^30, "2k" is 2000.
std::optional<double> ParseQuantity(absl::string_view text) {
  double scale = 1;
  for (const auto& [suffix, factor] : kSuffixes) {
    if (!absl::EndsWith(text, suffix)) continue;
    text.remove_suffix(absl::string_view(suffix).size());
    scale = factor;
    break;
  }
  // The number of a quantity has the syntax of a YAML number.
  const std::optional<double> value =
      codec::AsNumber({.kind = Node::Kind::kScalar, .scalar = std::string(text)});
  if (!value || *value < 0) return std::nullopt;
  return *value * scale;
}

std::optional<double> ReadQuantity(const codec::Key& key, const Node& value,
                                   const std::string& what, Diagnostics& diagnostics) {
  constexpr double kMaxQuantity = 9e18;  // fits an int64_t
  const std::optional<double> quantity = ParseQuantity(value.scalar);
  if (quantity && *quantity <= kMaxQuantity) return quantity;
  diagnostics.Add(value.mark, absl::StrCat("the limit ", codec::Quoted(key.name), " in ", what,
                                           " must be a quantity such as 2, 500m or 4Gi, not ",
                                           Describe(value)));
  return std::nullopt;
}

void ReadLimits(const Node& limits, const std::string& what, Resources& resources,
                Diagnostics& diagnostics) {
  constexpr double kMaxGpus = 1024;
  for (const auto& [key, value] : limits.entries) {
    const bool gpu =
        absl::EndsWith(key.name, "gpu");  // nvidia.com/gpu, alpha.kubernetes.io/nvidia-gpu
    if (!gpu && key.name != "cpu" && key.name != "memory") continue;
    const std::optional<double> quantity = ReadQuantity(key, value, what, diagnostics);
    if (!quantity) continue;
    if (key.name == "cpu") resources.cpus = *quantity;
    if (key.name == "memory") resources.memory_bytes = static_cast<int64_t>(*quantity);
    if (gpu) resources.gpus = static_cast<int>(std::min(*quantity, kMaxGpus));
  }
}

// Returns "" for a field that is absent or of another type, which CheckPodFields() reports.
std::string TextOf(const Node* node) { return node == nullptr ? "" : node->scalar; }

std::vector<std::string> TextsOf(const Node* node) {
  std::vector<std::string> texts;
  if (node == nullptr) return texts;
  for (const Node& item : node->items) texts.push_back(item.scalar);
  return texts;
}

// Skips variables with valueFrom, which only Kubernetes can evaluate. They remain in role.pod.
void ReadEnv(const Node& env, const std::string& what, RoleSpec& role, Diagnostics& diagnostics) {
  for (const Node& item : env.items) {
    const std::string name = TextOf(item.Find("name"));
    if (name.empty()) {
      diagnostics.Add(item.mark, absl::StrCat("an entry of 'env' in ", what,
                                              " lacks 'name'; expected the variable's name"));
    } else if (item.Find("valueFrom") == nullptr) {
      role.env[name] = TextOf(item.Find("value"));
    }
  }
}

// Returns the command with its arguments. Arguments alone are for the entry point of the image,
// which is known for the trainer only: the result is then empty.
std::vector<std::string> CommandOf(const Node& container, absl::string_view image) {
  std::vector<std::string> command = TextsOf(container.Find("command"));
  const std::vector<std::string> args = TextsOf(container.Find("args"));
  if (command.empty() && !args.empty() && IsTrainerImage(image)) command = {kTrainerProgram};
  if (!command.empty()) command.insert(command.end(), args.begin(), args.end());
  return command;
}

int ReadPort(const Node* ports, const std::string& what, Diagnostics& diagnostics) {
  if (ports == nullptr) return kTfJobPort;
  for (const Node& item : ports->items) {
    if (TextOf(item.Find("name")) != kTfJobPortName) continue;
    MapReader reader(item, absl::StrCat("the port 'tfjob-port' in ", what), diagnostics);
    const Node* port = reader.Require("containerPort", "a port");
    if (port == nullptr || !codec::AsInt(*port)) return kTfJobPort;
    return static_cast<int>(reader.Int("containerPort", 1, kLastPort).value_or(kTfJobPort));
  }
  return kTfJobPort;
}

void ReadContainer(const Node& node, const std::string& what, RoleSpec& role,
                   Diagnostics& diagnostics) {
  MapReader container(node, absl::StrCat("the container 'tensorflow' in ", what), diagnostics);
  if (const Node* image = container.Require("image", "the image to run")) {
    role.image = image->scalar;
    const bool empty = image->kind == Node::Kind::kScalar || image->kind == Node::Kind::kNull;
    if (role.image.empty() && empty) {
      diagnostics.Add(image->mark, absl::StrCat(container.what(), " has an empty image"));
    }
  }
  role.command = CommandOf(node, role.image);
  role.working_dir = TextOf(node.Find("workingDir"));
  if (const Node* env = node.Find("env")) ReadEnv(*env, what, role, diagnostics);
  role.port = ReadPort(node.Find("ports"), what, diagnostics);
  const Node* resources = node.Find("resources");
  const Node* limits = resources == nullptr ? nullptr : resources->Find("limits");
  if (limits != nullptr) ReadLimits(*limits, what, role.resources, diagnostics);
}

}  // namespace

void ReadPodTemplate(const Node& node, const std::string& what, RoleSpec& role,
                     Diagnostics& diagnostics) {
  role.pod = ToJson(node);
  CheckPodFields(node, "PodTemplateSpec", what, diagnostics);
  if (node.kind != Node::Kind::kMap && node.kind != Node::Kind::kNull) return;
  MapReader pod_template(node, what, diagnostics);
  const Node* spec = pod_template.Require("spec", "the pod's spec");
  if (spec == nullptr || (spec->kind != Node::Kind::kMap && spec->kind != Node::Kind::kNull)) {
    return;
  }
  MapReader pod(*spec, absl::StrCat("the pod's spec in ", what), diagnostics);
  const Node* containers = pod.Require("containers", "a list with a container named 'tensorflow'");
  if (containers == nullptr) return;
  for (const Node& container : containers->items) {
    if (TextOf(container.Find("name")) != kTensorflowContainer) continue;
    ReadContainer(container, what, role, diagnostics);
    return;
  }
  diagnostics.Add(containers->mark,
                  absl::StrCat(what, " has no container named 'tensorflow'; expected one"));
}

}  // namespace muster::job
