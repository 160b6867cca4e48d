// Environment variables as a function, so that tests can supply their own.
#pragma once

#include <functional>
#include <string>

namespace muster::base {

// Returns the value of a variable, or "" if it is not set.
using Variables = std::function<std::string(const std::string& name)>;

// Returns the environment of this process.
Variables ProcessVariables();

}  // namespace muster::base
