// Uses a trained model on this machine, by running the built-in trainer as a standalone task.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "job/event_sink.h"
#include "jobs/service.h"
#include "process/spawn.h"

namespace muster::jobs {

struct TrainerRequest {
  enum class Action { kEvaluate, kPredict };

  Action action = Action::kEvaluate;
  std::string split;                  // "" = that of the job's evaluations
  std::string checkpoint = "latest";  // a step, "best" or "latest"
  bool json = false;                  // of kEvaluate: prints JSON
  std::string to;                     // of kPredict: the file or URL to write, absolute
  bool force = false;                 // of kPredict: replaces the file
};

// Returns how muster-trainer is started for the model of `job`, which may still be running. `env`
// is the environment of the caller. Returns NotFound if muster-trainer is not installed,
// FailedPrecondition if the job has another trainer, and InvalidArgument for a malformed
// checkpoint.
absl::StatusOr<process::SpawnOptions> TrainerCommand(const Service& service,
                                                     const job::JobRecord& job,
                                                     const TrainerRequest& request,
                                                     std::map<std::string, std::string> env);

}  // namespace muster::jobs
