// The files that Amazon's tools share: ~/.aws/credentials and ~/.aws/config.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/variables.h"

namespace muster::storage {

// Sections of a file, each with its keys in lower case. What is indented belongs to the key above
// and is left out; # and ; begin comments.
using Ini = std::map<std::string, std::map<std::string, std::string>>;
Ini ParseIni(absl::string_view text);

struct Profile {
  std::string name;
  std::map<std::string, std::string> values;  // those of the credentials file win

  std::string Get(const std::string& key) const;
};

// The profile that AWS_PROFILE names, or "default", from the files that AWS_SHARED_CREDENTIALS_FILE
// and AWS_CONFIG_FILE name, or those in ~/.aws. Files that are absent are empty. NotFound when
// AWS_PROFILE names one that neither file has.
absl::StatusOr<Profile> ReadProfile(const Variables& variables);

}  // namespace muster::storage
