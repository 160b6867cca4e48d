// Builds the request body that creates a CustomJob. Pure.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "job/submission.h"
#include "platform/images.h"
#include "platform/unsupported.h"
#include "platform/vertex/machines.h"
#include "platform/vertex/pools.h"

namespace muster::vertex {

// Labels with Muster's id of the job and with the nonce of the submission. Ids are unique within a
// bucket only, whereas labels are searched within a project.
inline constexpr char kJobLabel[] = "muster_job";
inline constexpr char kRunLabel[] = "muster_run";
// Label of the folder that the job writes to. Absent from evaluations, which only read.
inline constexpr char kFolderLabel[] = "muster_folder";
std::string FolderLabel(absl::string_view model_dir);

// Returns the value of a job's label, or "" if it is absent.
std::string LabelOf(const nlohmann::json& job, const char* label);
// Returns the list filter for jobs with this label.
std::string LabelFilter(absl::string_view label, absl::string_view value);

// Command of a container of the built-in trainer, whose image contains the program, followed by the
// run's folder, its nonce and the hash of its job.json. muster-agent has the same command.
inline constexpr char kProgram[] = "muster";
inline constexpr char kTaskCommand[] = "vertex-task";

// Returns the machine of each pool; that of an empty pool is unspecified. Returns InvalidArgument
// if an option does not apply or the job does not fit the tier.
absl::StatusOr<std::array<Machine, kPools>> MachinesFor(const job::VertexTarget& target,
                                                        const Pools& pools);

// Returns true if the built-in trainer, which uses CPUs only, is given machines with GPUs.
bool LeavesGpusIdle(const job::JobSpec& spec, const Pools& pools,
                    const std::array<Machine, kPools>& machines);

// Returns InvalidArgument if the id is not a valid label: a-z, 0-9, - and _, at most 63 characters,
// starting with a letter.
absl::Status CheckJobId(absl::string_view id);

// Returns Muster's image for containers on Vertex AI, with both programs.
platform::Image ImageIn(const std::string& repository, absl::string_view version);
// Returns the image of a role: its own, else the target's, else for the built-in trainer the one in
// the target's repository or in the project's registry. Returns InvalidArgument for a program of
// the user's without an image.
absl::StatusOr<std::string> ImageOf(const job::RoleSpec& role, const job::VertexTarget& target,
                                    absl::string_view version);

// Returns the request body. `version` is Muster's and selects the image. REQUIRES: the submission
// is prepared.
absl::StatusOr<nlohmann::ordered_json> CustomJobOf(const job::Submission& submission,
                                                   absl::string_view version);

// Returns the fields of the job that Vertex AI ignores.
std::vector<platform::Limit> LimitsOf(const job::JobSpec& spec);

}  // namespace muster::vertex
