#include "platform/ssh/registration.h"

#include "platform/ssh/platform.h"
#include "platform/ssh/runner.h"

namespace muster::ssh {
namespace {

class SshOptions final : public platform::Options {
 public:
  void AddTo(platform::OptionUse use, platform::OptionSink& sink) override {
    if (use == platform::OptionUse::kRun || use == platform::OptionUse::kEnv) {
      sink.Option("--hosts", &hosts_,
                  "The hosts, each with an optional number of slots: vm1,me@gpu1:4");
    } else if (use == platform::OptionUse::kDoctor) {
      sink.Option("--hosts", &hosts_, "Also check hosts over SSH: vm1,me@gpu1");
    }
  }
  std::string FirstGiven() const override { return hosts_.empty() ? "" : "--hosts"; }
  job::Target ToTarget() const override { return job::SshTarget{.hosts = hosts_}; }

 private:
  std::string hosts_;
};

}  // namespace

platform::Registration Registration() {
  return {.traits = {.name = "ssh",
                     .title = "hosts over SSH",
                     .uses_installed_trainer = true,
                     .slow_to_submit = true,
                     .work_dir = platform::WorkDirUse::kSent},
          .make =
              [](const platform::Traits& traits, const platform::Environment& environment) {
                return std::make_unique<SshPlatform>(traits, environment);
              },
          .make_options = [] { return std::make_unique<SshOptions>(); },
          .make_runner = [](const supervise::JobDir& dir, const job::Submission& submission,
                            process::EventLoop& loop, supervise::RunnerEvents& events)
              -> absl::StatusOr<std::unique_ptr<supervise::Runner>> {
            return SshRunner::Create(dir, submission, loop, events);
          }};
}

}  // namespace muster::ssh
