#include "jobs/start/images.h"

#include "platform/capabilities.h"
#include "process/held_signals.h"

namespace muster::jobs {
namespace {

platform::PushOptions OptionsFor(Service& service, const process::HeldSignals& held) {
  return {.folder = service.home(),
          .find_program = [&service](const std::string& name) { return service.FindProgram(name); },
          .notify = [&service](const std::string& text) { service.Notify(text); },
          .cancelled = [&held] { return held.any(); }};
}

}  // namespace

std::vector<platform::Image> ImagesOf(Service& service, const job::Submission& submission) {
  const auto platform = service.platform(std::string(job::PlatformOf(submission.target)));
  if (!platform.ok()) return {};
  const auto* user = platform::CapabilityOf<platform::ImageUser>(**platform);
  if (user == nullptr) return {};
  return user->RequiredImages(submission);
}

absl::StatusOr<std::vector<platform::Image>> AbsentImages(
    Service& service, const std::vector<platform::Image>& images) {
  const process::HeldSignals held;
  return platform::AbsentImages(images, OptionsFor(service, held));
}

absl::Status PushImages(Service& service, const std::vector<platform::Image>& images) {
  const process::HeldSignals held;
  return platform::PushImages(images, OptionsFor(service, held));
}

}  // namespace muster::jobs
