#include "train/torch/main.h"

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "job/format/train_config.h"
#include "train/torch/job_experiment.h"

int main(int argc, char** argv) {
  using muster::train::Environment;
  using muster::train::Experiment;
  return muster::train::RunMain(
      argc, argv, [](const Environment& environment) -> absl::StatusOr<Experiment> {
        if (environment.train_config.empty()) {
          return absl::InvalidArgumentError(
              "nothing to train: MUSTER_TRAIN_CONFIG must name the job's train section as JSON; "
              "`muster run` sets it, and `muster env` prints it");
        }
        MUSTER_ASSIGN_OR_RETURN(const auto train,
                                muster::job::ReadTrainConfig(environment.train_config));
        return muster::train::ExperimentOf(train, environment.job_name);
      });
}
