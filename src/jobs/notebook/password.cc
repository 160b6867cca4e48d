#include "jobs/notebook/password.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files/files.h"
#include "base/status_macros.h"

namespace muster::jobs {
namespace {

constexpr int64_t kMaxPasswordFile = 4096;

}  // namespace

absl::Status CheckPassword(absl::string_view password) {
  if (password.size() >= kMinPasswordLength) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(password.empty() ? "the password is empty" : "the password is too short",
                   "; at least ", kMinPasswordLength, " characters are required"));
}

absl::StatusOr<std::string> ReadPasswordFile(const std::string& path) {
  const auto text = base::ReadFile(path, kMaxPasswordFile);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the password: ", text.status().message()));
  }
  absl::string_view password = *text;
  absl::ConsumeSuffix(&password, "\n");
  absl::ConsumeSuffix(&password, "\r");
  if (password.find('\n') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected one line, the password of the notebook"));
  }
  MUSTER_RETURN_IF_ERROR(base::Annotate(CheckPassword(password), path));
  return std::string(password);
}

std::string GeneratePassword() {
  // 32 characters without those that look alike: 5 bits each.
  constexpr absl::string_view kLetters = "abcdefghijkmnpqrstuvwxyz23456789";
  static_assert(kLetters.size() == 32);
  constexpr int kGroups = 4, kGroupLength = 5;
  std::random_device random;
  std::string password;
  for (int group = 0; group < kGroups; ++group) {
    if (group > 0) password.push_back('-');
    for (int i = 0; i < kGroupLength; ++i) password.push_back(kLetters[random() % kLetters.size()]);
  }
  return password;
}

}  // namespace muster::jobs
