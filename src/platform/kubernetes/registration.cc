#include "platform/kubernetes/registration.h"

#include "platform/kubernetes/platform.h"

namespace muster::kubernetes {
namespace {

class KubernetesOptions final : public platform::Options {
 public:
  void AddTo(platform::OptionUse use, platform::OptionSink& sink) override {
    if (use == platform::OptionUse::kEvaluate || use == platform::OptionUse::kDoctor) return;
    sink.Option("-n,--namespace", &namespace_, "The namespace");
    sink.Option("--context", &context_, "The context of the kubeconfig");
    if (use != platform::OptionUse::kRun) return;
    sink.Option("--trainer-image", &trainer_image_, "The image of the built-in trainer");
  }
  std::string FirstGiven() const override {
    if (!namespace_.empty()) return "--namespace";
    if (!context_.empty()) return "--context";
    return trainer_image_.empty() ? "" : "--trainer-image";
  }
  job::Target ToTarget() const override {
    return job::KubernetesTarget{
        .context = context_, .ns = namespace_, .trainer_image = trainer_image_};
  }
  absl::StatusOr<job::Target> InRepository(const std::string& repository) const override {
    if (!trainer_image_.empty()) return platform::ExcludesRepository("--trainer-image");
    return job::KubernetesTarget{
        .context = context_, .ns = namespace_, .image_repository = repository};
  }

 private:
  std::string namespace_;
  std::string context_;
  std::string trainer_image_;
};

}  // namespace

platform::Registration Registration() {
  return {.traits = {.name = "kubernetes", .title = "Kubernetes", .slow_to_submit = true},
          .make =
              [](const platform::Traits& traits, const platform::Environment& environment) {
                return std::make_unique<KubernetesPlatform>(traits, environment);
              },
          .make_options = [] { return std::make_unique<KubernetesOptions>(); }};
}

}  // namespace muster::kubernetes
