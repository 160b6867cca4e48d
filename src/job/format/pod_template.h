// Reads the container named `tensorflow` of a Kubernetes pod template. Of the other fields, only
// the types are checked.
#pragma once

#include <string>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster::job {

// The container of a TFJob's pod that runs the task, and its port.
inline constexpr char kTensorflowContainer[] = "tensorflow";
inline constexpr char kTfJobPortName[] = "tfjob-port";
inline constexpr int kTfJobPort = 2222;

// Sets command (command and args; empty if the image has an entry point of its own), env (literal
// values), working_dir, image, port (that of `tfjob-port`, else 2222), resources and pod of `role`.
// `what` names the template in messages: "the template of Worker".
void ReadPodTemplate(const codec::Node& node, const std::string& what, RoleSpec& role,
                     codec::Diagnostics& diagnostics);

}  // namespace muster::job
