#include "platform/local/registration.h"

#include "platform/local/platform.h"
#include "platform/local/runner.h"

namespace muster::local {

platform::Registration Registration() {
  return {.traits = {.name = "local",
                     .title = "this machine",
                     .runs_here = true,
                     .uses_installed_trainer = true,
                     .work_dir = platform::WorkDirUse::kShared},
          .make =
              [](const platform::Traits& traits, const platform::Environment& environment) {
                return std::make_unique<LocalPlatform>(traits, environment.program,
                                                       environment.home);
              },
          .make_runner = [](const supervise::JobDir& dir, const job::Submission& submission,
                            process::EventLoop& loop, supervise::RunnerEvents& events)
              -> absl::StatusOr<std::unique_ptr<supervise::Runner>> {
            return std::make_unique<LocalRunner>(dir, submission.id, loop, events);
          }};
}

}  // namespace muster::local
