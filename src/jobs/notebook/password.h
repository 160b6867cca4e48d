// Passwords of notebooks on this machine.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::jobs {

inline constexpr int kMinPasswordLength = 8;

// Returns InvalidArgument if the password is too short. Any user of this machine can connect to
// the notebook and guess.
absl::Status CheckPassword(absl::string_view password);
// Returns the password in the first line of a file. Returns InvalidArgument if the file cannot be
// read, has more than one line, or if its password is too short.
absl::StatusOr<std::string> ReadPasswordFile(const std::string& path);
// Returns a random password of 100 bits that is easy to type.
std::string GeneratePassword();

}  // namespace muster::jobs
