// TFJob manifests: kubeflow.org/v1 and its ancestor tensorflow.org/v1alpha1 (docs/job-file.md).
#pragma once

#include "codec/diagnostics.h"
#include "codec/node.h"
#include "job/job_spec.h"

namespace muster {

// The jobs are worth using only when `diagnostics` stayed empty.
JobSpec ReadTfJobV1(const codec::Node& document, codec::Diagnostics& diagnostics);
JobSpec ReadTfJobV1Alpha1(const codec::Node& document, codec::Diagnostics& diagnostics);

}  // namespace muster
