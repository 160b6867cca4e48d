// The shared files of Amazon's tools: ~/.aws/credentials and ~/.aws/config.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/variables.h"

namespace muster::storage {

// The sections of a file, each with its keys in lower case. Indented lines are nested settings and
// are ignored; # and ; begin comments.
using Ini = std::map<std::string, std::map<std::string, std::string>>;
Ini ParseIni(absl::string_view text);

struct Profile {
  std::string name;
  std::map<std::string, std::string> values;  // the credentials file takes precedence

  std::string Get(const std::string& key) const;
};

// Returns the profile that AWS_PROFILE names (default: "default") from the files that
// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name (default: those in ~/.aws). A missing file
// is empty. Returns NotFound if AWS_PROFILE names a profile that neither file has.
absl::StatusOr<Profile> ReadProfile(const base::Variables& variables);

}  // namespace muster::storage
