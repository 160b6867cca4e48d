#include "base/text/units.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::base {
namespace {

struct TimeUnit {
  const char* name;
  absl::Duration size;
};
const std::array<TimeUnit, 5>& TimeUnits() {
  static const std::array<TimeUnit, 5> units = {{{"d", absl::Hours(24)},
                                                 {"h", absl::Hours(1)},
                                                 {"m", absl::Minutes(1)},
                                                 {"s", absl::Seconds(1)},
                                                 {"ms", absl::Milliseconds(1)}}};
  return units;
}

constexpr const char* kDurationForm = "a duration such as 90s, 5m, 1h30m or 2d";
constexpr absl::Duration kMaxDuration = absl::Hours(24 * 36500);

absl::Status NotADuration(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not ", kDurationForm));
}

// Removes a leading decimal number from `text`.
bool ConsumeNumber(absl::string_view& text, double& value) {
  size_t length = 0;
  while (length < text.size() && (absl::ascii_isdigit(text[length]) || text[length] == '.'))
    ++length;
  const bool ok = length > 0 && absl::SimpleAtod(text.substr(0, length), &value);
  text.remove_prefix(length);
  return ok;
}

bool ConsumeTimeUnit(absl::string_view& text, absl::Duration& size) {
  size_t length = 0;
  while (length < text.size() && absl::ascii_isalpha(text[length])) ++length;
  const absl::string_view name = text.substr(0, length);
  text.remove_prefix(length);
  for (const TimeUnit& unit : TimeUnits()) {
    if (name == unit.name) {
      size = unit.size;
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  const absl::string_view whole = text;
  double number = 0;
  // A bare number. ConsumeNumber() rules out signs, exponents, "inf" and "nan".
  if (absl::SimpleAtod(text, &number) && ConsumeNumber(text, number) && text.empty()) {
    if (number * absl::Seconds(1) > kMaxDuration) return NotADuration(whole);
    return number * absl::Seconds(1);
  }
  text = whole;
  absl::Duration total;
  if (text.empty()) return NotADuration(whole);
  while (!text.empty()) {
    absl::Duration unit;
    if (!ConsumeNumber(text, number) || !ConsumeTimeUnit(text, unit)) return NotADuration(whole);
    total += number * unit;
  }
  if (total > kMaxDuration) return NotADuration(whole);
  return total;
}

std::string DurationToString(absl::Duration duration) {
  if (duration <= absl::ZeroDuration()) return "0s";
  std::string text;
  for (const TimeUnit& unit : TimeUnits()) {
    const int64_t count = absl::IDivDuration(duration, unit.size, &duration);
    if (count > 0) absl::StrAppend(&text, count, unit.name);
  }
  return text.empty() ? "0s" : text;
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  const absl::string_view whole = text;
  const absl::Status error = absl::InvalidArgumentError(
      absl::StrCat("'", whole, "' is not a size such as 512, 64KiB, 100MB or 1.5G"));
  double number = 0;
  if (!ConsumeNumber(text, number)) return error;
  std::string unit = absl::AsciiStrToUpper(absl::StripAsciiWhitespace(text));
  if (absl::EndsWith(unit, "B")) unit.pop_back();
  if (unit.size() == 2 && unit[1] == 'I') unit.pop_back();
  constexpr absl::string_view kUnits = "KMGTP";
  if (unit.size() > 1) return error;
  if (unit.size() == 1) {
    const size_t power = kUnits.find(unit[0]);
    if (power == absl::string_view::npos) return error;
    number *= std::pow(1024.0, static_cast<double>(power + 1));
  }
  if (number > 9.0e18) return error;
  return static_cast<int64_t>(number);
}

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, "B");
  double value = static_cast<double>(bytes);
  int power = -1;
  while (value >= 1024 && power < 4) {
    value /= 1024;
    ++power;
  }
  const std::string number =
      value < 10 ? absl::StrFormat("%.1f", value) : absl::StrFormat("%.0f", value);
  return absl::StrCat(number, std::string(1, "KMGTP"[power]), "iB");
}

std::string Plural(int64_t count, absl::string_view noun) {
  const absl::string_view ending = count == 1 ? "" : absl::EndsWith(noun, "s") ? "es" : "s";
  return absl::StrCat(count, " ", noun, ending);
}

std::string FormatElapsed(absl::Duration duration) {
  const int64_t s = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  if (s < 10) return absl::StrFormat("%.1fs", std::max(0.0, absl::ToDoubleSeconds(duration)));
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 86400) return absl::StrFormat("%dh%02dm", s / 3600, s % 3600 / 60);
  return absl::StrFormat("%dd%02dh", s / 86400, s % 86400 / 3600);
}

std::string FormatAge(absl::Duration age) {
  const int64_t s = absl::ToInt64Seconds(age);
  const auto count = [](int64_t n, const char* unit) {
    return absl::StrCat(Plural(n, unit), " ago");
  };
  if (s < 2) return "just now";
  if (s < 60) return count(s, "second");
  if (s < 3600) return count(s / 60, "minute");
  if (s < 86400) return count(s / 3600, "hour");
  return count(s / 86400, "day");
}

std::string FormatLocalTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone());
}

}  // namespace muster::base
