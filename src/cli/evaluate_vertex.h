// muster evaluate --train-folder: measures a model on Vertex AI.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/context.h"
#include "cli/vertex_options.h"

namespace muster::cli {

struct VertexEvaluation {
  std::string train_folder;  // of a run: gs://BUCKET/muster_ID
  std::string split;         // "": that of its evaluations
  std::string which;         // STEP, best or latest
  VertexPlaceOptions place;
  VertexRunOptions run;
  bool send_home = false;  // with --rebuild, the working directory may be the user's home
  bool detach = false;
  bool json = false;
};

// A job of one evaluator. What it finds goes to eval/ID.json beside the checkpoints, and is
// printed.
absl::StatusOr<int> EvaluateOnVertex(Context& context, const VertexEvaluation& evaluation);

}  // namespace muster::cli
