// Signed JSON Web Tokens, with which a service account authenticates.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::storage {

// Returns the token of a header and claims, both JSON, signed with an RSA key (RS256). Returns
// InvalidArgument if `private_key` is not an RSA key in PEM or has a passphrase; the message
// contains nothing of the key.
absl::StatusOr<std::string> SignJwt(absl::string_view header, absl::string_view claims,
                                    absl::string_view private_key);

}  // namespace muster::storage
