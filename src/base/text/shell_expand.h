// Expands ~ and variables as a shell does in an assignment.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/variables.h"

namespace muster::base {

enum class Tildes {
  kFirst,      // only at the start, as in a path
  kEachColon,  // also after each colon, as in the value of PATH
};

// Returns `text` with ~, ~user, $NAME and ${NAME} replaced; \$ and \~ are the characters
// themselves. Other backslashes, and a $ before a character that a shell leaves alone, are kept.
// Returns InvalidArgument for text that a shell would expand in another way, such as $(date), $1 or
// ${A:-b}, and for an unknown user and a variable that is not set or empty: a shell would insert
// nothing, and a path would become another one.
absl::StatusOr<std::string> ShellExpand(absl::string_view text, Tildes tildes,
                                        const Variables& variables);

}  // namespace muster::base
