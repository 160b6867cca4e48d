// Evaluates trained models on a platform, by a job of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "job/submission.h"
#include "jobs/service.h"
#include "nlohmann/json.hpp"
#include "platform/capabilities.h"

namespace muster::jobs {

struct EvaluationPlan {
  job::Submission submission;
  std::string result;  // the URL of the file that the job writes
};

// Returns the job of an evaluation, prepared by its platform. `job_id` is its id; "" = Muster
// chooses one. Starts nothing. Returns InvalidArgument if the platform of the request's target does
// not evaluate models.
absl::StatusOr<EvaluationPlan> PlanEvaluation(Service& service,
                                              const platform::EvaluationRequest& request,
                                              const std::string& job_id);
// Starts the job. Returns AlreadyExists if another job has taken the id since.
absl::StatusOr<job::JobRecord> StartEvaluation(Service& service, const EvaluationPlan& plan);
// Returns the result of an evaluation whose job has succeeded, an object with "metrics".
absl::StatusOr<nlohmann::json> ReadEvaluation(const std::string& url);

}  // namespace muster::jobs
