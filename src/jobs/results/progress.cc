#include "jobs/results/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/text/json.h"
#include "job/job_spec.h"
#include "jobs/start/untrusted_file.h"
#include "supervise/job_dir.h"

namespace muster::jobs {
namespace {

constexpr double kMaxNumber = 1e15;
// Time constant of the exponentially weighted rate.
constexpr absl::Duration kMemory = absl::Seconds(10);
// Minimum observation time before an estimate is made.
constexpr absl::Duration kShortest = absl::Seconds(1);
constexpr absl::Duration kLongestLeft = absl::Hours(24 * 999);

std::optional<double> NumberIn(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  if (!(std::abs(number) <= kMaxNumber)) return std::nullopt;
  return number;
}

std::optional<int64_t> CountIn(const nlohmann::json& json, const char* key) {
  const std::optional<double> number = NumberIn(json, key);
  if (!number.has_value() || *number < 0) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::string WithThousands(int64_t number) {
  std::string digits = absl::StrCat(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace

std::optional<Progress> ParseProgress(absl::string_view text) {
  // JSON has no such literals, but many writers, such as Python's json, emit them.
  const std::string valid =
      absl::StrReplaceAll(text, {{"NaN", "null"}, {"-Infinity", "null"}, {"Infinity", "null"}});
  const auto json = base::ParseJson(valid);
  if (!json.is_object()) return std::nullopt;
  const std::optional<int64_t> step = CountIn(json, "step");
  if (!step.has_value()) return std::nullopt;
  Progress progress{.step = *step, .steps = CountIn(json, "steps"), .loss = NumberIn(json, "loss")};
  if (progress.steps == 0) progress.steps.reset();
  if (json.contains("loss") && json["loss"].is_null()) {
    progress.loss = std::numeric_limits<double>::quiet_NaN();
  }
  progress.examples_per_second = NumberIn(json, "examples_per_second");
  if (progress.examples_per_second < 0) progress.examples_per_second.reset();
  return progress;
}

std::optional<Progress> ReadProgressFile(const std::string& path) {
  const auto text = ReadUntrustedFile(path);
  return text.has_value() ? ParseProgress(*text) : std::nullopt;
}

std::optional<Progress> ReadJobProgress(const job::JobRecord& job,
                                        const std::vector<job::TaskRecord>& tasks) {
  const supervise::JobDir dir(job.directory);
  for (const bool chief : {true, false}) {
    for (const job::TaskRecord& task : tasks) {
      if (job::IsChiefRole(task.id.role) != chief) continue;
      if (auto progress = ReadProgressFile(dir.progress(task.id))) return progress;
    }
  }
  return std::nullopt;
}

std::string DescribeLoss(double loss) {
  if (std::isnan(loss)) return "loss nan";
  const double size = std::abs(loss);
  const bool plain = size == 0 || (size >= 0.001 && size < 100'000);
  return plain ? absl::StrFormat("loss %.4f", loss) : absl::StrFormat("loss %.3g", loss);
}

std::string DescribeRate(double rate) {
  return absl::StrCat(rate < 10 ? absl::StrFormat("%.1f", rate) : WithThousands(std::llround(rate)),
                      " examples/s");
}

std::string DescribeProgress(const Progress& progress) {
  std::string text = absl::StrCat("step ", progress.step);
  if (progress.steps.has_value()) absl::StrAppend(&text, " of ", *progress.steps);
  if (progress.loss.has_value()) absl::StrAppend(&text, ", ", DescribeLoss(*progress.loss));
  if (progress.examples_per_second.has_value()) {
    absl::StrAppend(&text, ", ", DescribeRate(*progress.examples_per_second));
  }
  return text;
}

void ProgressMeter::Update(const Progress& progress, absl::Time now) {
  if (last_.has_value() && progress.step == last_->step) {
    last_ = progress;
    return;
  }
  // The step decreases when a restarted task resumes from a checkpoint.
  const bool anew = !last_.has_value() || progress.step < last_->step || now <= last_time_;
  if (anew) {
    rate_ = 0;
    first_time_ = now;
    interval_ = absl::ZeroDuration();
  } else {
    interval_ = now - last_time_;
    const double rate =
        static_cast<double>(progress.step - last_->step) / absl::ToDoubleSeconds(interval_);
    // The second weight yields the plain mean while the measurement is shorter than kMemory.
    const double weight = std::max(1 - std::exp(-absl::FDivDuration(interval_, kMemory)),
                                   absl::FDivDuration(interval_, now - first_time_));
    rate_ += weight * (rate - rate_);
  }
  last_ = progress;
  last_time_ = now;
}

std::optional<absl::Duration> ProgressMeter::Left(absl::Time now) const {
  if (!last_.has_value() || !last_->steps.has_value() || rate_ <= 0) return std::nullopt;
  if (last_time_ - first_time_ < kShortest || last_->step >= *last_->steps) return std::nullopt;
  const auto steps = static_cast<double>(*last_->steps - last_->step);
  const absl::Duration left = absl::Seconds(steps / rate_);
  if (left > kLongestLeft) return std::nullopt;
  // Counts down between two steps, but not further than the last interval if the next is late.
  const absl::Duration since = std::clamp(now - last_time_, absl::ZeroDuration(), interval_);
  return std::max(left - since, absl::Milliseconds(1));  // never 0: steps remain
}

}  // namespace muster::jobs
