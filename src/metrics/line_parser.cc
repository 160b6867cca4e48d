#include "metrics/line_parser.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/text/json.h"

namespace muster::metrics {
namespace {

// Longer lines are data, not reports of progress.
constexpr size_t kMaxLine = 16 << 10;
constexpr size_t kMaxValues = 64;
constexpr double kMaxStep = 1e15;

constexpr std::array<absl::string_view, 5> kStepNames = {"step", "steps", "global_step", "iter",
                                                         "iteration"};
// A name counts as a metric if it is one of these or ends with one after '_', '-', '/' or '.'.
constexpr std::array<absl::string_view, 17> kMetricNames = {
    "loss",      "accuracy", "acc",  "top1", "top5", "perplexity", "ppl",    "auc", "f1",
    "precision", "recall",   "bleu", "mse",  "mae",  "rmse",       "reward", "lr"};

template <size_t kCount>
bool IsOneOf(const std::array<absl::string_view, kCount>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsMetric(absl::string_view name) {
  if (IsOneOf(kMetricNames, name)) return true;
  const size_t cut = name.find_last_of("_-/.");
  return cut != absl::string_view::npos && IsOneOf(kMetricNames, name.substr(cut + 1));
}

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '/' ||
         c == '.';
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Reads a line from left to right.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  void Skip() { ++at_; }

  // Consumes a name, which begins with a letter or '_'. Returns it in lower case, "" if there is
  // none.
  std::string Name() {
    const size_t begin = at_;
    if (IsNameByte(Peek()) && !IsDigit(Peek()) && Peek() != '-' && Peek() != '.' && Peek() != '/') {
      while (!AtEnd() && IsNameByte(Peek())) ++at_;
    }
    return absl::AsciiStrToLower(text_.substr(begin, at_ - begin));
  }

  // Consumes what stands between a name and its value: spaces, quotes, and ':', '=' or '['.
  void Separator() {
    while (!AtEnd() && absl::StrContains(" \t\"':=[#", Peek())) ++at_;
  }

  // Consumes a number, or nan. Returns nullopt and stays if there is none.
  std::optional<double> Number() {
    size_t end = at_;
    const absl::string_view rest = text_.substr(at_);
    if (absl::StartsWithIgnoreCase(rest, "nan") && (rest.size() == 3 || !IsNameByte(rest[3]))) {
      at_ += 3;
      return std::nan("");
    }
    if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
    if (end >= text_.size() || (!IsDigit(text_[end]) && text_[end] != '.')) return std::nullopt;
    while (end < text_.size() && (IsDigit(text_[end]) || text_[end] == '.' || IsGroup(end))) ++end;
    if (end + 1 < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (text_[exponent] == '-' || text_[exponent] == '+') ++exponent;
      if (exponent < text_.size() && IsDigit(text_[exponent])) {
        end = exponent;
        while (end < text_.size() && IsDigit(text_[end])) ++end;
      }
    }
    // A sentence may end after a number.
    absl::string_view digits = text_.substr(at_, end - at_);
    if (absl::EndsWith(digits, ".")) digits.remove_suffix(1);
    double value = 0;
    if (!absl::SimpleAtod(absl::StrReplaceAll(digits, {{",", ""}}), &value)) return std::nullopt;
    at_ += digits.size();
    return value;
  }

  // Consumes "/N", as in "step 100/500". Returns N.
  std::optional<double> Total() {
    if (Peek() != '/' || at_ + 1 >= text_.size() || !IsDigit(text_[at_ + 1])) return std::nullopt;
    ++at_;
    return Number();
  }

 private:
  // Returns true for a comma at `at` between a digit and exactly three digits: "1,234".
  bool IsGroup(size_t at) const {
    if (text_[at] != ',' || at == 0 || !IsDigit(text_[at - 1])) return false;
    size_t end = at + 1;
    while (end < text_.size() && IsDigit(text_[end])) ++end;
    return end - at == 4;
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

std::optional<int64_t> ToStep(double number) {
  if (!(number >= 0 && number <= kMaxStep) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// The numbers of a line of text that matter.
struct Findings {
  std::optional<int64_t> step, epoch;
  std::optional<int64_t> done, total;  // "640/60000" without a name
  std::vector<std::pair<std::string, double>> values;
};

Findings Scan(absl::string_view line) {
  Findings found;
  Scanner scanner(line);
  while (!scanner.AtEnd()) {
    const std::string name = scanner.Name();
    if (name.empty()) {
      const auto number = scanner.Number();
      if (!number) {
        scanner.Skip();
        continue;
      }
      const auto total = scanner.Total();
      if (scanner.Total()) continue;  // a date: 11/18/2026
      if (total && !found.done) {
        found.done = ToStep(*number);
        found.total = ToStep(*total);
      }
      continue;
    }
    const bool is_step = IsOneOf(kStepNames, name);
    const bool is_epoch = name == "epoch";
    if (!is_step && !is_epoch && !IsMetric(name)) continue;
    scanner.Separator();
    const auto number = scanner.Number();
    if (!number) continue;
    const auto total = scanner.Total();
    if (is_step) {
      // "[step 5] … took 3 steps": the first one counts.
      if (!found.step) found.step = ToStep(*number);
    } else if (is_epoch) {
      found.epoch = ToStep(*number);
    } else if (!total && found.values.size() < kMaxValues) {
      found.values.emplace_back(name, *number);
    }
  }
  return found;
}

}  // namespace

std::optional<Measurement> ParseMetricsLine(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::StartsWith(line, "{") || line.size() > kMaxLine) return std::nullopt;
  // JSON has no such literals, but many writers, such as Python's json, emit them. Only text after
  // a colon is a value.
  const std::string valid = absl::StrReplaceAll(line, {{": NaN", ": null"},
                                                       {": Infinity", ": null"},
                                                       {": -Infinity", ": null"},
                                                       {":NaN", ":null"},
                                                       {":Infinity", ":null"},
                                                       {":-Infinity", ":null"}});
  const nlohmann::json json = base::ParseJson(valid);
  if (!json.is_object()) return std::nullopt;
  const nlohmann::json& step = base::MemberOf(json, "step");
  if (!step.is_number()) return std::nullopt;
  const auto number = ToStep(step.get<double>());
  if (!number) return std::nullopt;
  Measurement result{.step = *number};
  const auto add = [&result](const std::string& name, const nlohmann::json& value) {
    if (result.values.size() == kMaxValues || name.empty()) return;
    if (value.is_number()) result.values.emplace_back(name, value.get<double>());
    if (value.is_null()) result.values.emplace_back(name, std::nan(""));
  };
  if (const nlohmann::json& time = base::MemberOf(json, "time"); time.is_number()) {
    const double seconds = time.get<double>();
    if (std::isfinite(seconds)) result.time = absl::UnixEpoch() + absl::Seconds(seconds);
  }
  const std::string name = base::TextMember(json, "name");
  if (!name.empty() && json.contains("value")) {
    add(name, json["value"]);
  } else {
    for (const auto& [key, value] : json.items()) {
      if (key != "step" && key != "time") add(key, value);
    }
  }
  if (result.values.empty()) return std::nullopt;
  return result;
}

std::optional<Measurement> OutputParser::Parse(absl::string_view line) {
  if (line.size() > kMaxLine) return std::nullopt;
  if (auto measurement = ParseMetricsLine(line)) return measurement;
  return ParseText(line);
}

std::optional<Measurement> OutputParser::ParseText(absl::string_view line) {
  Findings found = Scan(line);
  if (found.epoch) epoch_ = *found.epoch;
  if (found.epoch == 0) first_epoch_ = 0;
  if (found.values.empty()) return std::nullopt;
  if (!found.step && found.done && found.total) {
    const auto before = static_cast<double>(epoch_ - first_epoch_);
    found.step =
        ToStep(before * static_cast<double>(*found.total) + static_cast<double>(*found.done));
  } else if (!found.step) {
    found.step = found.epoch;
  }
  if (!found.step) return std::nullopt;
  // An estimator reports the loss of an evaluation under the name of the training's.
  if (absl::StrContains(line, "Saving dict for global step")) {
    for (auto& [name, value] : found.values) name = absl::StrCat("eval/", name);
  }
  return Measurement{.step = *found.step, .values = std::move(found.values)};
}

}  // namespace muster::metrics
