// Command-line options for jobs on Vertex AI.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/command.h"
#include "cli/context.h"
#include "job/submission.h"

namespace muster::cli {

inline constexpr char kVertexGroup[] = "On Vertex AI (--on vertex)";

// The location of a job. For all commands that take a job.
struct VertexTargetOptions {
  std::string project;
  std::string region;

  bool given() const { return !project.empty() || !region.empty(); }
  // Overrides the fields of `target` whose option is given.
  void AddTo(VertexTarget& target) const;
};

// The resources of a new job. "" and -1 = not given.
struct VertexRunOptions {
  std::string job_id;
  std::string bucket;
  std::string scale_tier;
  std::string master_type;
  std::string worker_type;
  int worker_count = -1;
  std::string parameter_server_type;
  int parameter_server_count = -1;
  std::string dataset;
  std::string resume;
  std::string image;
  bool rebuild = false;

  // Returns the name of the first given option, or "" if none is given.
  std::string FirstGiven() const;
  // Overrides the fields of `target` whose option is given.
  void AddTo(VertexTarget& target) const;
};

// Adds --project and --region. `options` must live until the command has run, here and below.
void AddVertexTargetOptions(Command& command, VertexTargetOptions* options);
// Adds --job-id, --bucket, --scale-tier, --master-type, --image and --rebuild.
void AddVertexJobOptions(Command& command, VertexRunOptions* options);
// Adds the other options of VertexRunOptions.
void AddVertexTrainOptions(Command& command, VertexRunOptions* options);

// Applies the options to a submission for Vertex AI and chooses its id; see ChooseJobId. Returns
// InvalidArgument if an option is given for another platform, AlreadyExists if the id is taken.
absl::Status ApplyVertexOptions(Context& context, const std::string& platform,
                                const VertexRunOptions& options, Submission& submission);

// Sets the id of a submission to `wanted`, or to PREFIX_%Y%m%d_%H%M%S if that is "". The id is not
// in the history, or is that of an unmade job (see IsUnmade). Does not reserve it: see TakeId.
// Returns AlreadyExists if `wanted` is taken. REQUIRES: submission.target is a VertexTarget.
absl::Status ChooseJobId(Context& context, const std::string& wanted, const std::string& prefix,
                         Submission& submission);

}  // namespace muster::cli
