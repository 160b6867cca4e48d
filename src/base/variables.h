// The environment, as something that can be replaced in a test.
#pragma once

#include <functional>
#include <string>

namespace muster {

// The value of a variable; "" when it is not set.
using Variables = std::function<std::string(const std::string& name)>;

// This process's own.
Variables ProcessVariables();

}  // namespace muster
