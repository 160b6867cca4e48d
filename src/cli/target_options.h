// Command-line options that select where a job runs.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/vertex_options.h"
#include "job/target.h"

namespace muster::cli {

// Help headings of options for one platform.
inline constexpr char kSshGroup[] = "On hosts over SSH (--on ssh)";
inline constexpr char kKubernetesGroup[] = "On Kubernetes (--on kubernetes)";

struct TargetOptions {
  std::string platform;  // "" = that of the job's record, else local
  std::string kubernetes_namespace;
  std::string kube_context;
  std::string hosts = "";
  VertexTargetOptions vertex = {};

  // Returns the target to store in a Submission.
  Target ToTarget() const;
  // Returns whether a namespace or a context is given.
  bool in_cluster() const;
  // Returns InvalidArgument if an option does not apply to `platform`.
  absl::Status Check() const;
};

// Adds --on, --namespace (named `namespace_names`), --context, --project and --region. `options`
// must live until the command has run.
void AddTargetOptions(Command& command, TargetOptions* options,
                      const std::string& namespace_names = "-n,--namespace");

}  // namespace muster::cli
