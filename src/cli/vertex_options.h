// Options of commands for jobs on Vertex AI.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/command.h"
#include "cli/context.h"
#include "launch/submission.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

inline constexpr char kVertexGroup[] = "On Vertex AI (--on vertex)";

// Where a job is: for every command that is about one.
struct VertexPlaceOptions {
  std::string project;
  std::string region;

  bool given() const { return !project.empty() || !region.empty(); }
  void AddTo(nlohmann::json& place) const;
};

// What a new job is made of. "" and -1: not given.
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

  // The first of those that were given; "" when none was.
  std::string FirstGiven() const;
  void AddTo(nlohmann::json& place) const;
};

// --project and --region. `options` lives until the command has run, here and below.
void AddVertexPlaceOptions(Command& command, VertexPlaceOptions* options);
// --job-id, --bucket, --scale-tier, --master-type, --image and --rebuild.
void AddVertexJobOptions(Command& command, VertexRunOptions* options);
// The other ones.
void AddVertexTrainOptions(Command& command, VertexRunOptions* options);

// Completes a submission by the options. InvalidArgument when they are given for another platform;
// AlreadyExists for an id that a job has.
absl::Status ApplyVertexOptions(Context& context, const std::string& platform,
                                const VertexRunOptions& options, Submission& submission);

// Gives a submission, whose place is set, an id that no job of the history has: the one that was
// asked for, else PREFIX_%Y%m%d_%H%M%S. That of a job that never came to be may be taken, too. It
// is not kept for it: see TakeId.
absl::Status ChooseJobId(Context& context, const std::string& wanted, const std::string& prefix,
                         Submission& submission);

}  // namespace muster::cli
