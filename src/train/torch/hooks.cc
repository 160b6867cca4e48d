// The built-in hooks.
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/files/files.h"
#include "muster/train.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

class EarlyStoppingHook final : public Hook {
 public:
  EarlyStoppingHook(int64_t patience, double min_delta)
      : patience_(patience), min_delta_(min_delta) {}

  void AfterStep(RunContext& context, const StepResult& result) override {
    if (!context.is_chief()) return;
    if (result.loss < best_ - min_delta_) {
      best_ = result.loss;
      best_step_ = result.step;
    } else if (result.step - best_step_ >= patience_) {
      context.RequestStop(
          absl::StrFormat("the loss has not improved on %.6g since step %d", best_, best_step_));
    }
  }

 private:
  const int64_t patience_;
  const double min_delta_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t best_step_ = 0;
};

class ProfilerHook final : public Hook {
 public:
  ProfilerHook(std::string path, int64_t first_step, int64_t steps)
      : path_(std::move(path)), first_(first_step), last_(first_step + steps - 1) {}

  void AfterStep(RunContext& context, const StepResult& result) override {
    if (result.step < first_ || result.step > last_) return;
    absl::Time at = absl::Now() - result.exchange_time - result.compute_time - result.input_time;
    const auto add = [&](const char* name, absl::Duration duration) {
      events_.push_back({{"name", name},
                         {"ph", "X"},
                         {"ts", absl::ToUnixMicros(at)},
                         {"dur", absl::ToInt64Microseconds(duration)},
                         {"pid", 0},
                         {"tid", context.task()},
                         {"args", {{"step", result.step}}}});
      at += duration;
    };
    add("input", result.input_time);
    add("compute", result.compute_time);
    add("exchange", result.exchange_time);
    if (result.step == last_) Write();
  }
  void End(RunContext& /*context*/) override { Write(); }

 private:
  void Write() {
    if (events_.empty()) return;
    const nlohmann::json trace = {{"traceEvents", events_}};
    // Best effort: a profile must not fail the job.
    base::ReplaceFile(path_, trace.dump(), 0644).IgnoreError();
    events_.clear();
  }

  const std::string path_;
  const int64_t first_;
  const int64_t last_;
  std::vector<nlohmann::json> events_;
};

}  // namespace

std::shared_ptr<Hook> EarlyStopping(int64_t patience, double min_delta) {
  return std::make_shared<EarlyStoppingHook>(patience, min_delta);
}

std::shared_ptr<Hook> Profiler(const std::string& path, int64_t first_step, int64_t steps) {
  return std::make_shared<ProfilerHook>(path, first_step, steps);
}

}  // namespace muster::train
