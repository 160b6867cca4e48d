// The environment of a storage under test.
#pragma once

#include <map>
#include <string>

#include "base/variables.h"

namespace muster::storage {

// Returns an environment of exactly these variables.
base::Variables VariablesOf(std::map<std::string, std::string> values);

// Unsets the proxy variables: test servers run on this machine.
void ForgetProxies();

}  // namespace muster::storage
