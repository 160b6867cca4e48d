// Expands ~ and variables of the shell in the paths and the `env` of a job file.
#pragma once

#include "base/variables.h"
#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster::job {

// Expands, in Muster's own format, the values that are paths, and the values of `env`. Commands are
// left alone: a line is expanded by the shell that runs it, and the words of a list by nobody,
// which is worth a warning if one looks as if it should be. Reports what cannot be expanded, and
// keeps it.
void ExpandPathsAndEnv(const base::Variables& variables, codec::Node& document,
                       codec::Diagnostics& diagnostics);

}  // namespace muster::job
