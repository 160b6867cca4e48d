#include "job/pod_template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codec/map_reader.h"
#include "job/job_rules.h"

namespace muster {
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

// A Kubernetes quantity: "500m" is 0.5, "1Gi" is 2^30, "2k" is 2000.
std::optional<double> ParseQuantity(absl::string_view text) {
  double scale = 1;
  for (const auto& [suffix, factor] : kSuffixes) {
    if (!absl::EndsWith(text, suffix)) continue;
    text.remove_suffix(absl::string_view(suffix).size());
    scale = factor;
    break;
  }
  // A quantity's number is written as YAML's are: digits, a fraction, an exponent.
  const std::optional<double> value =
      codec::AsNumber({.kind = Node::Kind::kScalar, .scalar = std::string(text)});
  if (!value || *value < 0) return std::nullopt;
  return *value * scale;
}

std::optional<double> ReadQuantity(const codec::Key& key, const Node& value,
                                   const std::string& what, Diagnostics& diagnostics) {
  constexpr double kMost = 9e18;  // fits an int64_t
  const std::optional<double> quantity = ParseQuantity(value.scalar);
  if (quantity && *quantity <= kMost) return quantity;
  diagnostics.Add(value.mark, absl::StrCat("the limit ", codec::Quoted(key.name), " in ", what,
                                           " must be a quantity such as 2, 500m or 4Gi, not ",
                                           Describe(value)));
  return std::nullopt;
}

void ReadLimits(const Node& limits, const std::string& what, Resources& resources,
                Diagnostics& diagnostics) {
  constexpr double kMostGpus = 1024;
  for (const auto& [key, value] : limits.entries) {
    const bool gpu =
        absl::EndsWith(key.name, "gpu");  // nvidia.com/gpu, alpha.kubernetes.io/nvidia-gpu
    if (!gpu && key.name != "cpu" && key.name != "memory") continue;
    const std::optional<double> quantity = ReadQuantity(key, value, what, diagnostics);
    if (!quantity) continue;
    if (key.name == "cpu") resources.cpus = *quantity;
    if (key.name == "memory") resources.memory_bytes = static_cast<int64_t>(*quantity);
    if (gpu) resources.gpus = static_cast<int>(std::min(*quantity, kMostGpus));
  }
}

// Values that Kubernetes computes (valueFrom) are known to it alone; they stay in the pod.
void ReadEnv(const Node& env, const std::string& what, RoleSpec& role, Diagnostics& diagnostics) {
  for (const Node& item : env.items) {
    MapReader reader(item, absl::StrCat("an entry of 'env' in ", what), diagnostics);
    reader.Require("name", "the variable's name");
    const auto name = reader.String("name");
    const bool computed = reader.Find("valueFrom") != nullptr;
    if (!name || computed) continue;
    const Node* value = reader.Find("value");
    const bool absent = value == nullptr || value->kind == Node::Kind::kNull;
    role.env[*name] = absent ? "" : reader.String("value").value_or("");
  }
}

int ReadPort(const Node* ports, const std::string& what, Diagnostics& diagnostics) {
  if (ports == nullptr) return kTfJobPort;
  for (const Node& item : ports->items) {
    const Node* name = item.Find("name");
    if (name == nullptr || name->scalar != kTfJobPortName) continue;
    MapReader reader(item, absl::StrCat("the port 'tfjob-port' in ", what), diagnostics);
    reader.Require("containerPort", "a port");
    return static_cast<int>(reader.Int("containerPort", 1, kLastPort).value_or(kTfJobPort));
  }
  return kTfJobPort;
}

void ReadContainer(const Node& node, const std::string& what, RoleSpec& role,
                   Diagnostics& diagnostics) {
  MapReader container(node, absl::StrCat("the container 'tensorflow' in ", what), diagnostics);
  if (container.Require("image", "the image to run") != nullptr) {
    role.image = container.String("image").value_or("");
    if (role.image.empty()) {
      diagnostics.Add(container.Find("image")->mark,
                      absl::StrCat(container.what(), " has an empty image"));
    }
  }
  role.command = container.StringList("command");
  const std::vector<std::string> args = container.StringList("args");
  role.command.insert(role.command.end(), args.begin(), args.end());
  role.working_dir = container.String("workingDir").value_or("");
  if (const Node* env = container.Find("env")) ReadEnv(*env, what, role, diagnostics);
  role.port = ReadPort(container.Find("ports"), what, diagnostics);
  const Node* resources = container.Find("resources");
  const Node* limits = resources == nullptr ? nullptr : resources->Find("limits");
  if (limits != nullptr) ReadLimits(*limits, what, role.resources, diagnostics);
}

}  // namespace

void ReadPodTemplate(const Node& node, const std::string& what, RoleSpec& role,
                     Diagnostics& diagnostics) {
  role.pod = ToJson(node);
  MapReader pod_template(node, what, diagnostics);
  const Node* spec = pod_template.Require("spec", "the pod's spec");
  if (spec == nullptr) return;
  MapReader pod(*spec, absl::StrCat("the pod's spec in ", what), diagnostics);
  const Node* containers = pod.Require("containers", "a list with a container named 'tensorflow'");
  if (containers == nullptr) return;
  for (const Node& container : containers->items) {
    const Node* name = container.Find("name");
    if (name == nullptr || name->scalar != kTensorflowContainer) continue;
    ReadContainer(container, what, role, diagnostics);
    return;
  }
  diagnostics.Add(containers->mark,
                  absl::StrCat(what, " has no container named 'tensorflow'; expected one"));
}

}  // namespace muster
