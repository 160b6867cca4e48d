// Pushes the images of Muster that jobs and the operator need to the repository of the user.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "job/submission.h"
#include "jobs/service.h"
#include "platform/images.h"

namespace muster::jobs {

// Returns the images that the job needs in the repository that its target names.
// REQUIRES: the submission is prepared.
std::vector<platform::Image> ImagesOf(Service& service, const job::Submission& submission);

// Returns those of `images` that their registry does not have; see platform/images.h.
absl::StatusOr<std::vector<platform::Image>> AbsentImages(
    Service& service, const std::vector<platform::Image>& images);
// Makes those images of the installed programs and pushes them. Ctrl-C, SIGTERM and SIGHUP cancel
// it, and take effect once everything is cleaned up.
absl::Status PushImages(Service& service, const std::vector<platform::Image>& images);

}  // namespace muster::jobs
