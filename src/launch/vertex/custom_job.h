// A job as Vertex AI takes it: the body of a request that creates a CustomJob. Pure.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launch/submission.h"
#include "launch/unsupported.h"
#include "launch/vertex/machines.h"
#include "launch/vertex/place.h"
#include "launch/vertex/pools.h"

namespace muster::vertex {

// Our id of a job, by which it is found again; and what its submission is called, because ids are
// those of a bucket, and labels of a project.
inline constexpr char kJobLabel[] = "muster_job";
inline constexpr char kRunLabel[] = "muster_run";
// Where it writes to. Evaluations only read there, and have none.
inline constexpr char kFolderLabel[] = "muster_folder";
std::string FolderLabel(absl::string_view model_dir);

// The value of a job's label; "": it has none.
std::string LabelOf(const nlohmann::json& job, const char* label);
// Which jobs have it, for a list.
std::string LabelFilter(absl::string_view label, absl::string_view value);

// What every container runs, followed by the run's folder, its nonce and the hash of its job.json.
// It is in the image.
inline constexpr char kProgram[] = "muster";
inline constexpr char kTaskCommand[] = "vertex-task";

// The machine of each pool; those of an empty one say nothing. InvalidArgument when options are
// given that do not apply, or the job does not fit the tier.
absl::StatusOr<std::array<Machine, kPools>> MachinesFor(const Place& place, const Pools& pools);

// Whether the built-in trainer, which computes on CPUs, gets machines with GPUs.
bool LeavesGpusIdle(const JobSpec& spec, const Pools& pools,
                    const std::array<Machine, kPools>& machines);

// InvalidArgument for an id that cannot be a label: a-z, 0-9, - and _, at most 63, a letter first.
absl::Status CheckJobId(absl::string_view id);

// The image of a role: its own, else the place's; of the built-in trainer that in the project's
// registry. InvalidArgument for a command of the user's for which no image is named.
absl::StatusOr<std::string> ImageOf(const RoleSpec& role, const Place& place,
                                    absl::string_view version);

// `version` is that of Muster, for the image. The submission is prepared: its place is complete.
absl::StatusOr<nlohmann::ordered_json> CustomJobOf(const Submission& submission,
                                                   absl::string_view version);

// What the file asks for and Vertex AI does not do.
std::vector<Limit> LimitsOf(const JobSpec& spec);

}  // namespace muster::vertex
