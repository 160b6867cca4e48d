// Where a job is, as the options of a command say it.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/vertex_options.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

// Headings of options that only one platform has.
inline constexpr char kSshGroup[] = "On hosts over SSH (--on ssh)";
inline constexpr char kKubernetesGroup[] = "On Kubernetes (--on kubernetes)";

struct PlaceOptions {
  std::string platform;  // "": where the history says, else this machine
  std::string kubernetes_namespace;
  std::string kube_context;
  std::string hosts = "";
  VertexPlaceOptions vertex = {};

  // What a Submission keeps of it; null when nothing was said.
  nlohmann::json ToJson() const;
  // InvalidArgument for options of another platform than the one that is named.
  absl::Status Check() const;
};

// --on, --namespace (by `namespace_names`) and --context, --project and --region. `options` lives
// until the command has run.
void AddPlaceOptions(Command& command, PlaceOptions* options,
                     const std::string& namespace_names = "-n,--namespace");

}  // namespace muster::cli
