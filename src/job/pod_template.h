// The part of a Kubernetes pod template that Muster reads: the container named `tensorflow`. Of the
// rest, which is Kubernetes' own, only the types are checked.
#pragma once

#include <string>

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster {

// The container of a TFJob's pod that its rules are about, and its port.
inline constexpr char kTensorflowContainer[] = "tensorflow";
inline constexpr char kTfJobPortName[] = "tfjob-port";
inline constexpr int kTfJobPort = 2222;

// Fills command (command and args), env (literal values), working_dir, image, port (2222 unless
// `tfjob-port` says otherwise), resources and pod of `role`. `what` names the template in messages:
// "the template of Worker".
void ReadPodTemplate(const codec::Node& node, const std::string& what, RoleSpec& role,
                     codec::Diagnostics& diagnostics);

}  // namespace muster
