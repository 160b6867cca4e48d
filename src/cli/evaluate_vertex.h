// muster evaluate --train-folder: evaluates a model on Vertex AI.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/vertex_options.h"

namespace muster::cli {

struct VertexEvaluation {
  std::string train_folder;  // the folder of a training run: gs://BUCKET/muster_ID
  std::string split;         // "" = that of the run's evaluations, else test
  std::string which;         // STEP, best or latest
  VertexTargetOptions target;
  VertexRunOptions run;
  bool send_home = false;  // with --rebuild: allow the home directory as working directory
  bool detach = false;
  bool json = false;
};

// Submits a job with one evaluator, which writes eval/ID.json into the model dir. Unless `detach`
// is set, waits for the job and prints the result. Returns the exit code, FailedPrecondition if the
// run has no train section, or AlreadyExists if another job took the id.
absl::StatusOr<int> EvaluateOnVertex(Context& context, const VertexEvaluation& evaluation);

}  // namespace muster::cli
