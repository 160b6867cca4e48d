// Determines the addresses of a job's notebook.
#pragma once

#include "absl/status/statusor.h"
#include "job/job_spec.h"
#include "job/target.h"
#include "k8s/client.h"
#include "platform/capabilities.h"

namespace muster::kubernetes {

// Returns NotFound if the objects of the notebook do not exist. REQUIRES: `spec` has a notebook and
// is named as in the cluster; `target` has a namespace.
absl::StatusOr<platform::NotebookAccess> FindNotebook(k8s::Client& client, const job::JobSpec& spec,
                                                      const job::KubernetesTarget& target);

}  // namespace muster::kubernetes
