#include "k8s/quantity.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::k8s {
namespace {

using Nano = __int128;

constexpr Nano kOne = 1'000'000'000;
constexpr int kMaxDigits = 18;  // before the suffix
constexpr int kFractionDigits = 9;
// The sum of 10,000 maximal quantities does not overflow.
constexpr Nano kMax = kOne * 1'000'000'000 * 1'000'000'000 * 1'000;

struct Suffix {
  absl::string_view name;
  Nano factor;  // in billionths
  bool binary;
};

// Sorted: binary before decimal, each from large to small.
constexpr Suffix kSuffixes[] = {{"Ei", kOne << 60, true},
                                {"Pi", kOne << 50, true},
                                {"Ti", kOne << 40, true},
                                {"Gi", kOne << 30, true},
                                {"Mi", kOne << 20, true},
                                {"Ki", kOne << 10, true},
                                {"E", kOne * 1'000'000'000 * 1'000'000'000, false},
                                {"P", kOne * 1'000'000 * 1'000'000'000, false},
                                {"T", kOne * 1'000 * 1'000'000'000, false},
                                {"G", kOne * 1'000'000'000, false},
                                {"M", kOne * 1'000'000, false},
                                {"k", kOne * 1'000, false},
                                {"", kOne, false},
                                {"m", kOne / 1'000, false},
                                {"u", kOne / 1'000'000, false},
                                {"n", 1, false}};

const Suffix* FindSuffix(absl::string_view name) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.name == name) return &suffix;
  }
  return nullptr;
}

// Returns 10^exponent in billionths, or 0 if it is out of range.
Nano FactorOf(absl::string_view exponent) {
  int power = 0;
  if (!absl::SimpleAtoi(exponent, &power) || power < -kFractionDigits || power > kMaxDigits) {
    return 0;
  }
  Nano factor = 1;
  for (int i = -kFractionDigits; i < power; ++i) factor *= 10;
  return factor;
}

}  // namespace

std::optional<Quantity> Quantity::Parse(absl::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  Nano digits = 0;
  int whole = 0, fraction = 0;
  bool point = false;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !point) {
      point = true;
    } else if (!absl::ascii_isdigit(text[at])) {
      break;
    } else if (point && fraction == kFractionDigits) {
      continue;  // below the resolution
    } else if (!point && whole == kMaxDigits) {
      return std::nullopt;
    } else {
      digits = digits * 10 + (text[at] - '0');
      ++(point ? fraction : whole);
    }
  }
  if (whole + fraction == 0) return std::nullopt;
  absl::string_view rest = text.substr(at);
  const Suffix* suffix = FindSuffix(rest);
  const bool scientific =
      suffix == nullptr && rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E');
  if (suffix == nullptr && !scientific) return std::nullopt;
  const Nano factor = scientific ? FactorOf(rest.substr(1)) : suffix->factor;
  if (factor == 0 || (digits > 0 && digits > kMax / factor)) return std::nullopt;
  Quantity quantity;
  quantity.nano_ = digits * factor;
  for (int i = 0; i < fraction; ++i) quantity.nano_ /= 10;
  quantity.binary_ = !scientific && suffix->binary;
  return quantity;
}

std::optional<Quantity> Quantity::Of(const Json& value) {
  if (value.is_string()) return Parse(value.get<std::string>());
  return value.is_number() ? Parse(value.dump()) : std::nullopt;
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (nano_ == 0) binary_ = other.binary_;
  nano_ += other.nano_;
  return *this;
}

std::string Quantity::ToString() const {
  if (nano_ == 0) return "0";
  const Suffix* best = &kSuffixes[std::size(kSuffixes) - 1];
  for (const Suffix& suffix : kSuffixes) {
    const bool usable = suffix.binary == binary_ || suffix.factor <= kOne;
    if (usable && nano_ % suffix.factor == 0) {
      best = &suffix;
      break;
    }
  }
  return absl::StrCat(static_cast<int64_t>(nano_ / best->factor), best->name);
}

}  // namespace muster::k8s
