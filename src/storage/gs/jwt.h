// Signed assertions (JSON Web Tokens): how a service account says who it is.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

// The token of a header and claims, both JSON, signed with an RSA key (RS256). InvalidArgument when
// `private_key` is none in PEM, or one with a pass phrase; the message holds nothing of it.
absl::StatusOr<std::string> SignJwt(absl::string_view header, absl::string_view claims,
                                    absl::string_view private_key);

}  // namespace muster::storage
