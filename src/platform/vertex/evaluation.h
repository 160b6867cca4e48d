// Builds the job that evaluates a trained model on Vertex AI.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "job/submission.h"
#include "platform/capabilities.h"
#include "storage/storage.h"

namespace muster::vertex {

// Returns a job with one evaluator for the run in request.train_folder, without an id. Returns
// FailedPrecondition if the run has no train section, or NotFound if the folder holds no run.
absl::StatusOr<job::Submission> EvaluationOf(storage::Storage& storage,
                                             const platform::EvaluationRequest& request);

// Makes the evaluator write eval/ID.json into the model dir, and the same as result.json into its
// own folder, which is in the bucket of --bucket. Returns the URL of the first.
// REQUIRES: the submission is from EvaluationOf() and has its id.
std::string SetResultFile(job::Submission& submission);

}  // namespace muster::vertex
