#include "train/run/progress_report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/files.h"
#include "nlohmann/json.hpp"

namespace muster::train {
namespace {

constexpr absl::Duration kFileInterval = absl::Milliseconds(250);
constexpr absl::Duration kRateInterval = absl::Milliseconds(500);

}  // namespace

ProgressReport::ProgressReport(Options options, int64_t first_step, absl::Time now)
    : options_(std::move(options)),
      counted_step_(first_step),
      counted_at_(now),
      logged_step_(first_step),
      written_at_(absl::InfinitePast()) {}

void ProgressReport::Step(int64_t step, int64_t limit, double loss, int64_t examples,
                          absl::Time now) {
  const bool last = step >= limit;
  if (now - counted_at_ > kRateInterval || last || rate_ == 0) {
    const double seconds = absl::ToDoubleSeconds(now - counted_at_);
    if (seconds > 0) {
      rate_ = static_cast<double>((step - counted_step_) * examples) / seconds;
    }
    counted_step_ = step;
    counted_at_ = now;
  }
  if (now - written_at_ > kFileInterval || last) WriteFile(step, limit, loss, now);
  const int64_t every = options_.log_every_steps;
  if (!options_.log_steps || (step / every == logged_step_ / every && !last)) return;
  logged_step_ = step;
  options_.log(absl::StrFormat("step %d/%d, loss %.4f, %.0f examples/s", step, limit, loss, rate_));
}

void ProgressReport::WriteFile(int64_t step, int64_t limit, double loss, absl::Time now) {
  written_at_ = now;
  if (options_.file.empty()) return;
  nlohmann::json json = {{"step", step}, {"steps", limit}, {"examples_per_second", rate_}};
  json["loss"] = std::isfinite(loss) ? nlohmann::json(loss) : nlohmann::json();
  base::ReplaceFile(options_.file, json.dump()).IgnoreError();  // best effort: only informs
}

}  // namespace muster::train
